/** Rows of text, the first of them a heading, each column as wide as its widest cell. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('   ')
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('')
}
