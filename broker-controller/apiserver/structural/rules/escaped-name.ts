/** Names of fields as expressions write them (staging/src/k8s.io/apiserver/pkg/cel/escaping.go). */

const reserved: ReadonlySet<string> = new Set([
  ...['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import'],
  ...['let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'],
])
const signs: { readonly [sign: string]: string } = {
  ...{ __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' },
}

/** Whether the name is a word of the language: expressions may write it as it is, behind a dot, but for `in` and the literals. */
export function isReservedName(name: string): boolean {
  return reserved.has(name)
}

/** undefined: an expression cannot name the field. */
export function escapedName(name: string): string | undefined {
  if (reserved.has(name)) return `__${name}__`
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined
  return name.replace(/__|[./-]/g, (sign) => signs[sign] ?? sign)
}
