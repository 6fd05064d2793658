// Figures: values on hover and by arrow keys, one series alone, linear axes, a file of the drawing. Not needed to read.
(function () {
  var contents = document.querySelector("details.contents");
  if (contents && window.matchMedia("(max-width: 75rem)").matches) { contents.open = false; }
  function unfold() {
    var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var at = target; at; at = at.parentElement) { if (at.tagName === "DETAILS") { at.open = true; } }
    if (target) { target.scrollIntoView(); }
  }
  addEventListener("hashchange", unfold);
  if (location.hash) { unfold(); }
  addEventListener("beforeprint", function () {
    document.querySelectorAll("main details").forEach(function (one) { one.open = true; });
  });
  function button(text, pressed, act) {
    var made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-pressed", String(pressed));
    made.addEventListener("click", act);
    return made;
  }
  function rows(link) {
    if (!link) { return []; }
    var text = decodeURIComponent(link.href.slice(link.href.indexOf(",") + 1));
    return text.trim().split("\n").slice(1).map(function (line) {
      return (line.match(/("([^"]|"")*"|[^,]*)(,|$)/g) || []).map(function (cell) {
        return cell.replace(/,$/, "").replace(/^"|"$/g, "").replace(/""/g, '"');
      });
    });
  }
  document.querySelectorAll(".plot").forEach(function (plot) {
    var tools = plot.querySelector(".tools"), drawn = plot.querySelector(".drawn"), alone = null, at = -1;
    var data = rows(plot.querySelector("a[href^='data:']")), names = [];
    plot.querySelectorAll("svg title").forEach(function (title) {
      var owner = title.parentNode;
      if (owner.tagName === "svg") { owner.setAttribute("aria-label", title.textContent); owner.removeAttribute("aria-labelledby"); }
      else if (owner.dataset.s && !names[owner.dataset.s]) { names[owner.dataset.s] = title.textContent.split(". ")[0]; }
      title.remove();
    });
    var known = data.map(function (row) { return row[1]; });
    names.forEach(function (name, place) {  // a title breaks off at its first full stop, which a name may hold
      if (!name || known.indexOf(name) >= 0) { return; }
      var longer = known.find(function (one) { return one.indexOf(name) === 0; });
      if (longer) { names[place] = longer; }
    });
    function isolate(series) {
      alone = alone === series ? null : series;
      plot.querySelectorAll("[data-s]").forEach(function (part) {
        part.classList.toggle("dimmed", alone !== null && Number(part.dataset.s) !== alone);
      });
      tools.querySelectorAll("button[data-s]").forEach(function (one) {
        one.setAttribute("aria-pressed", String(Number(one.dataset.s) === alone));
      });
    }
    if (plot.querySelector("svg.linear")) {
      tools.prepend(button("linear axis", false, function () {
        this.setAttribute("aria-pressed", String(plot.classList.toggle("linear")));
      }));
    }
    if (names.filter(Boolean).length > 1) {
      names.forEach(function (name, series) {
        var made = button(name, false, function () { isolate(series); });
        made.dataset.s = series;
        made.title = "Show this one alone";
        tools.append(made);
      });
      plot.querySelectorAll(".k-label").forEach(function (label) {
        label.addEventListener("click", function () { isolate(Number(label.dataset.s)); });
      });
    }
    var save = tools.querySelector("a[data-save]");
    save.addEventListener("click", function () {  // a mailed report has no figures/ beside it
      var copy = plot.querySelector(plot.classList.contains("linear") ? "svg.wide.linear" : "svg.wide.as-is").cloneNode(true);
      var style = document.createElementNS("http://www.w3.org/2000/svg", "style");
      style.textContent = document.querySelector("style").textContent;
      copy.classList.remove("wide");
      copy.prepend(style);
      var group = '<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="' + copy.getAttribute("viewBox") + '">';
      var text = group + new XMLSerializer().serializeToString(copy) + "</svg>";
      save.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
      save.download = save.dataset.save;
    });
    if (!data.length) { return; }
    var tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    plot.append(tip);
    function visible() {
      return Array.from(plot.querySelectorAll("svg")).find(function (svg) { return svg.getClientRects().length; });
    }
    function place(axis, value) { return axis[1] + axis[2] * (axis[0] === "log" ? Math.log(value) : value); }
    function points(svg) {
      var found = [];
      svg.querySelectorAll("[data-map]").forEach(function (panel) {
        var map = JSON.parse(panel.dataset.map), ys = {};
        data.forEach(function (row) {
          if (row[0] !== panel.dataset.panel || (alone !== null && row[1] !== names[alone])) { return; }
          var cells = map.kind === "cells", x = parseFloat(row[2]) - (cells ? 0.5 : 0);
          var y = cells ? parseFloat(row[1]) - 0.5 : parseFloat(row[3]);
          if (map.kind === "dots") { ys = y; y = x; x = ys; }
          var px = place(map.x, x), py = place(map.y, y), box = map.box;
          if (px < box[0] - 1 || px > box[0] + box[2] + 1 || py < box[1] - 1 || py > box[1] + box[3] + 1) { return; }
          var where = cells ? row[1].replace(/^\d+ /, "") + " → " + row[2].replace(/^\d+ /, "") : row[1];
          var head = map.kind === "lines" ? ", " + plot.dataset.x + " = " + row[2] : "";
          var ends = row[4] ? " [" + row[4] + ", " + row[5] + "]" : "";
          found.push({ x: px, y: py, text: (where + head + ": " + row[3] + ends).replace(/(^|[ [])-/g, "$1−") });
        });
      });
      return found;
    }
    function show(svg, point) {
      var view = svg.viewBox.baseVal, scale = svg.clientWidth / view.width || svg.getBoundingClientRect().width / view.width;
      tip.textContent = point.text;
      tip.hidden = false;
      tip.style.top = point.y * scale + 12 + "px";
      tip.style.left = Math.max(0, Math.min(point.x * scale + 12, plot.clientWidth - tip.offsetWidth)) + "px";
    }
    drawn.tabIndex = 0;
    drawn.setAttribute("role", "group");
    drawn.setAttribute("aria-label", plot.dataset.name + ": arrow keys read its values");
    drawn.addEventListener("pointermove", function (event) {
      var svg = visible(), box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      var x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale, best = null, least = 400;
      points(svg).forEach(function (point) {
        var distance = Math.pow(point.x - x, 2) + Math.pow(point.y - y, 2);
        if (distance < least) { least = distance; best = point; }
      });
      if (best) { show(svg, best); } else { tip.hidden = true; }
    });
    drawn.addEventListener("pointerleave", function () { tip.hidden = true; });
    drawn.addEventListener("blur", function () { tip.hidden = true; });
    drawn.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") { tip.hidden = true; }
      if (!step) { return; }
      event.preventDefault();
      var svg = visible(), all = points(svg);
      if (!all.length) { return; }
      at = (at + step + all.length) % all.length;
      show(svg, all[at]);
    });
  });
})();
