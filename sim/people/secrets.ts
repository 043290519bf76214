/** The Secrets of a world: each has a value by which it is found in any text. */
const head = 'only for pods that name '

export function secretManifest(name: string) {
  const token = Buffer.from(`${head}${name}.`).toString('base64')
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, data: { token } }
}

/** Whole groups of three bytes: the same in each value. */
const sign = Buffer.from(head).toString('base64')

/** The names of the Secrets whose values are in this text. */
export function secretsIn(text: string): readonly string[] {
  const names: string[] = []
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + sign.length)) {
    const [encoded = ''] = /^[A-Za-z0-9+/=]+/.exec(text.slice(at, at + 200)) ?? []
    const [name = ''] = Buffer.from(encoded, 'base64').toString().slice(head.length).split('.')
    names.push(name)
  }
  return names
}
