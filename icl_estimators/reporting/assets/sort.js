// Tables sort on a click of a heading, or Enter or Space on it: up, down, as written.
(function () {
  function number(text) {
    var word = text.trim().toLowerCase();
    if (/^[−-]?inf\b/.test(word)) { return word[0] === "i" ? Infinity : -Infinity; }
    return parseFloat(word.replace(/−/g, "-").replace(/(\d),(?=\d{3})/g, "$1"));
  }
  function compare(a, b) {
    var x = number(a), y = number(b);
    if (isNaN(x) && isNaN(y)) { return a.localeCompare(b); }
    if (isNaN(x) || isNaN(y)) { return isNaN(x) ? 1 : -1; }
    return x === y ? 0 : x < y ? -1 : 1;
  }
  document.querySelectorAll("main table").forEach(function (table) {
    var body = table.tBodies[0], headings = Array.from(table.querySelectorAll("thead th"));
    if (!body || body.rows.length < 2) { return; }
    var written = Array.from(body.rows);
    headings.forEach(function (heading, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append.apply(button, Array.from(heading.childNodes));
      heading.append(button);
      button.addEventListener("click", function () {
        var was = heading.getAttribute("aria-sort");
        headings.forEach(function (other) { other.removeAttribute("aria-sort"); });
        var rows = written.slice();
        if (was !== "descending") {
          var sign = was === "ascending" ? -1 : 1;
          heading.setAttribute("aria-sort", was === "ascending" ? "descending" : "ascending");
          rows.sort(function (a, b) {
            return sign * compare(a.cells[column].textContent, b.cells[column].textContent);
          });
        }
        body.append.apply(body, rows);
      });
    });
  });
})();
