/** apt's configuration files → the last value of each option. As in apt.conf(5): nested blocks, or names with `::`. */

/** Options in lower case, because apt ignores case: `unattended-upgrade::automatic-reboot`. */
export type AptSettings = ReadonlyMap<string, { readonly value: string; readonly file: string }>

export function aptSettings(files: readonly { readonly path: string; readonly content: string }[]): AptSettings {
  const settings = new Map<string, { value: string; file: string }>()
  for (const { path, content } of files) {
    for (const [name, value] of settingsIn(content)) settings.set(name, { value, file: path })
  }
  return settings
}

/** By their whole name, in lower case. */
function* settingsIn(content: string): Generator<readonly [name: string, value: string]> {
  const scopes: string[] = []
  let words: string[] = []
  for (const token of tokensOf(content)) {
    if (token !== '{' && token !== '}' && token !== ';') {
      words.push(token)
      continue
    }
    const [name, value] = words
    words = []
    if (token === '{') scopes.push(name ?? '')
    if (token === '}') scopes.pop()
    if (token !== ';' || name === undefined || value === undefined) continue
    yield [[...scopes, name].join('::').toLowerCase(), value]
  }
}

export function isTrue(value: string | undefined): boolean {
  return /^(1|true|yes|on|with|enable)$/i.test(value ?? '')
}

function tokensOf(content: string): readonly string[] {
  const comments = /"(?:[^"\n])*"|\/\*[\s\S]*?\*\/|(?:\/\/|#).*$/gm
  const text = content.replace(comments, (match) => (match.startsWith('"') ? match : ' '))
  return [...text.matchAll(/"([^"\n]*)"|([{};])|([^\s{};"]+)/g)].map(
    ([, quoted, mark, word]) => quoted ?? mark ?? word ?? '',
  )
}
