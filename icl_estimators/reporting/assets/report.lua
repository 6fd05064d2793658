-- What pandoc leaves to us: alternative text and breakable labels in Typst, tables that scroll in HTML.
local typst = FORMAT:match("typst") ~= nil

local function quoted(text)
  return '"' .. text:gsub("\\", "\\\\"):gsub('"', '\\"') .. '"'
end

local inline = {}
local function inlined(meta)
  for key in pairs(meta) do
    local stem = key:match("^inline%-(.+)$")
    if stem then
      inline[stem] = true
    end
  end
end

-- pandoc's Typst writer drops alt text, without which the PDF would not be PDF/UA.
local function image(element)
  if typst then
    local alt = element.attributes.alt or pandoc.utils.stringify(element.caption)
    return pandoc.RawInline("typst", "#image(" .. quoted(element.src) .. ", width: 100%, alt: " .. quoted(alt) .. ")")
  end
  local stem = element.src:match("^figures/(.+)%.svg$")
  if stem and inline[stem] then
    return pandoc.RawInline("html", "[[drawing " .. stem .. "]]")
  end
end

local function math(element)
  if typst then
    local body = pandoc.write(pandoc.Pandoc({ pandoc.Plain({ element }) }), "typst"):gsub("%s+$", "")
    return pandoc.RawInline("typst", "#{ set math.equation(alt: " .. quoted(element.text) .. "); " .. "[" .. body .. "] }")
  end
end

-- Typst breaks a line only where Unicode allows it: not within run_of_letters:like=this.
local ZERO_WIDTH_SPACE = utf8.char(0x200B)
local function breakable(element)
  if #element.text < 20 then
    return nil
  end
  local parts, run = {}, 0
  for _, point in utf8.codes(element.text) do
    local letter = utf8.char(point)
    table.insert(parts, letter)
    run = run + 1
    if letter:match("[-:=_./,]") or run == 24 then
      table.insert(parts, ZERO_WIDTH_SPACE)
      run = 0
    end
  end
  element.text = table.concat(parts)
  return element
end

-- A short table stays on one page; a long one must be allowed to break, or what does not fit is cut off.
local LONG = 16
local function wrapped(element)
  if typst then
    element = element:walk({ Str = breakable, Code = breakable })
    local rows = 0
    for _, body in ipairs(element.bodies) do
      rows = rows + #body.body
    end
    if rows <= LONG then
      return element
    end
    return {
      pandoc.RawBlock("typst", "#[\n#show figure.where(kind: table): set block(breakable: true)"),
      element,
      pandoc.RawBlock("typst", "]"),
    }
  end
  for _, row in ipairs(element.head.rows) do
    for _, cell in ipairs(row.cells) do
      cell.attr.attributes.scope = "col"
    end
  end
  for _, body in ipairs(element.bodies) do
    body.row_head_columns = 1
    for _, row in ipairs(body.body) do
      row.cells[1].attr.attributes.scope = "row"
    end
  end
  local name = pandoc.utils.stringify(element.caption.long):match("^%a+ %d+") or "Table"
  local attributes = { { "tabindex", "0" }, { "role", "region" }, { "aria-label", name } }
  return pandoc.Div({ element }, pandoc.Attr("", { "table-wrap" }, attributes))
end

local regions = 0
local function preformatted(element)
  if not typst then
    regions = regions + 1
    element.attributes.tabindex = "0"
    element.attributes.role = "region"
    element.attributes["aria-label"] = "Command " .. regions
    return element
  end
end

-- What is for reference only opens on a click in HTML, and is an appendix in print.
local appendix = pandoc.List()
local function folded(element)
  if not element.classes:includes("folded") then
    return nil
  end
  if typst then
    appendix:extend(element.content)
    return {}
  end
  local summary = "Definitions"
  element:walk({
    Table = function(inner)
      summary = pandoc.utils.stringify(inner.caption.long):match("^[^.]*%. [^.]*") or summary
    end,
  })
  local blocks = pandoc.List({ pandoc.RawBlock("html", "<details><summary>" .. summary .. "</summary>") })
  blocks:extend(element.content)
  blocks:insert(pandoc.RawBlock("html", "</details>"))
  return blocks
end

local function with_appendix(document)
  if #appendix > 0 then
    document.blocks:insert(pandoc.Header(2, "Appendix: definitions of the columns", pandoc.Attr("appendix")))
    document.blocks:extend(appendix)
  end
  return document
end

return {
  { Meta = inlined },
  { Image = image, Math = math, CodeBlock = preformatted },
  { Table = wrapped },
  { Div = folded },
  { Pandoc = with_appendix },
}
