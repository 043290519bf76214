const goEscapes: { readonly [character: string]: string } = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

/** As `%q` of Go, without the quotes (strconv.Quote): characters that cannot be printed are escaped. */
export function quotedByGo(text: string): string {
  return text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    const digits = (width: number) => code.toString(16).padStart(width, '0')
    const escaped = code < 0x80 ? `\\x${digits(2)}` : code < 0x10000 ? `\\u${digits(4)}` : `\\U${digits(8)}`
    return goEscapes[character] ?? escaped
  })
}
