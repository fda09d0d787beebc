// console.table: rows and columns with box-drawing characters, as Node draws them.

const { inspect, kindOf } = shared;
const { makeList, join, widthOf } = shared.layout;
const { ownProperty } = shared.titles;
const { ownKeys } = Reflect;
const { String } = globalThis;
const uncurry = (method) => Function.prototype.call.bind(method);
const repeat = uncurry(String.prototype.repeat);
const mapEntries = uncurry(Map.prototype.entries);
const nextEntry = uncurry(Reflect.getPrototypeOf(new Map().entries()).next);
const setValues = uncurry(Set.prototype.values);
const nextMember = uncurry(Reflect.getPrototypeOf(new Set().values()).next);
const { isArray } = Array;

const LONGEST = 65536; // characters of cells; what doesn't fit would be cut anyway
const MOST_COLUMNS = 1000;
const isObject = (value) => typeof value === "object" && value !== null;

// On one line, and not deep: of an object with more than two properties only the name.
function showCell(value) {
  const large = isObject(value) && !isArray(value) && ownKeys(value).length > 2;
  return inspect(value, { __proto__: null, depth: large ? -1 : 0, maxArrayLength: 3, lineWidth: Infinity });
}

// A table being filled: the first column holds the row's name, the last one values that aren't objects.
function makeTable(indexTitle) {
  const known = { __proto__: null }; // the names in `columns`
  return { __proto__: null, indexTitle, columns: makeList(), known, rows: makeList(), hasValues: false, characters: 0 };
}

function addRow(table, name, value, wanted) {
  const row = { __proto__: null, name, cells: { __proto__: null }, value: "" };
  if (isObject(value) && kindOf(value) !== "Function") {
    const keys = wanted ?? ownKeys(value);
    for (let index = 0; index < keys.length && table.characters < LONGEST; index++) {
      const key = keys[index];
      if (typeof key === "symbol") continue;
      const property = ownProperty(value, key);
      if (property === undefined ? wanted === undefined : !property.enumerable) continue;
      if (table.known[key] === undefined) {
        if (table.columns.length >= MOST_COLUMNS) continue;
        table.columns[table.columns.length] = key;
        table.known[key] = true;
      }
      if (property === undefined) continue;
      row.cells[key] = property.get === undefined ? showCell(property.value) : "[Getter]";
      table.characters += row.cells[key].length + 3;
    }
  } else {
    row.value = showCell(value);
    table.hasValues = true;
  }
  table.characters += name.length + row.value.length + 6;
  table.rows[table.rows.length] = row;
}

function fillTable(data, kind, wanted) {
  if (kind === "Map") {
    const table = makeTable("(iteration index)");
    table.columns[0] = "Key";
    table.columns[1] = "Values";
    const iterator = mapEntries(data);
    for (let step = nextEntry(iterator); !step.done && table.characters < LONGEST; step = nextEntry(iterator)) {
      const cells = { __proto__: null, Key: showCell(step.value[0]), Values: showCell(step.value[1]) };
      table.characters += cells.Key.length + cells.Values.length + 9;
      table.rows[table.rows.length] = { __proto__: null, name: String(table.rows.length), cells, value: "" };
    }
    return table;
  }
  if (kind === "Set") {
    const table = makeTable("(iteration index)");
    const iterator = setValues(data);
    for (let step = nextMember(iterator); !step.done && table.characters < LONGEST; step = nextMember(iterator)) {
      addRow(table, String(table.rows.length), step.value, wanted);
    }
    return table;
  }
  const table = makeTable("(index)");
  const keys = ownKeys(data);
  for (let index = 0; index < keys.length && table.characters < LONGEST; index++) {
    const property = typeof keys[index] === "symbol" ? undefined : ownProperty(data, keys[index]);
    if (property === undefined || !property.enumerable) continue;
    addRow(table, keys[index], property.get === undefined ? property.value : "[Getter]", wanted);
  }
  return table;
}

function drawLine(widths, left, middle, right) {
  const parts = makeList();
  for (let index = 0; index < widths.length; index++) parts[index] = repeat("─", widths[index] + 2);
  return left + join(parts, middle) + right;
}

function drawRow(cells, widths) {
  const parts = makeList();
  for (let index = 0; index < widths.length; index++) {
    parts[index] = " " + cells[index] + repeat(" ", widths[index] - widthOf(cells[index]) + 1);
  }
  return "│" + join(parts, "│") + "│";
}

function draw(table) {
  const lines = makeList();
  const titles = makeList();
  titles[0] = table.indexTitle;
  for (let index = 0; index < table.columns.length; index++) titles[titles.length] = table.columns[index];
  if (table.hasValues) titles[titles.length] = "Values";
  lines[0] = titles;
  for (let number = 0; number < table.rows.length; number++) {
    const { name, cells, value } = table.rows[number];
    const line = makeList();
    line[0] = name;
    for (let index = 0; index < table.columns.length; index++) line[line.length] = cells[table.columns[index]] ?? "";
    if (table.hasValues) line[line.length] = value;
    lines[lines.length] = line;
  }
  const widths = makeList();
  for (let column = 0; column < titles.length; column++) {
    widths[column] = 0;
    for (let number = 0; number < lines.length; number++) {
      const width = widthOf(lines[number][column]);
      if (width > widths[column]) widths[column] = width;
    }
  }
  let text = drawLine(widths, "┌", "┬", "┐") + "\n" + drawRow(titles, widths);
  text += "\n" + drawLine(widths, "├", "┼", "┤");
  for (let number = 1; number < lines.length && text.length <= LONGEST; number++) {
    text += "\n" + drawRow(lines[number], widths);
  }
  return text + "\n" + drawLine(widths, "└", "┴", "┘");
}

// The table as text; null for what isn't an object, or can't be read (a Proxy's traps may throw).
shared.formatTable = (data, wanted) => {
  if (!isObject(data)) return null;
  try {
    return draw(fillTable(data, kindOf(data), isArray(wanted) ? wanted : undefined));
  } catch {
    return null;
  }
};
