/** apt's configuration files → the last value of each option. As in apt.conf(5): nested blocks, or names with `::`. */

/** Options in lower case, because apt ignores case: `unattended-upgrade::automatic-reboot`. */
export type AptSettings = ReadonlyMap<string, { readonly value: string; readonly file: string }>

export function aptSettings(files: readonly { readonly path: string; readonly content: string }[]): AptSettings {
  const settings = new Map<string, { value: string; file: string }>()
  for (const { path, content } of files) {
    const scopes: string[] = []
    let words: string[] = []
    for (const token of tokensOf(content)) {
      if (token === '{') {
        scopes.push(words[0] ?? '')
        words = []
      } else if (token === '}') {
        scopes.pop()
        words = []
      } else if (token === ';') {
        const [name, value] = words
        if (name !== undefined && value !== undefined) {
          settings.set([...scopes, name].join('::').toLowerCase(), { value, file: path })
        }
        words = []
      } else words.push(token)
    }
  }
  return settings
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
