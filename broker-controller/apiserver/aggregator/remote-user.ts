/** Names the user of a request to an extension server: headers of the front proxy (client-go, transport/round_trippers.go, SetAuthProxyHeaders). */
import { ApiError } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'

export const userHeader = 'X-Remote-User'
export const groupHeader = 'X-Remote-Group'
export const uidHeader = 'X-Remote-Uid'
export const extraHeaderPrefix = 'X-Remote-Extra-'

/** Servers that take `_` for `-` in names are not to be deceived either. */
const claimed = /^x[-_]remote[-_]/i

/** The headers of a request, names and values in turn, with the identity in place of all that a client claims. Throws BadRequest. */
export function withRemoteUser(
  headers: readonly string[],
  { user, groups, uid, extra = {} }: Identity,
): readonly string[] {
  const kept = headers.filter((_, i) => !claimed.test(headers[i - (i % 2)] ?? ''))
  const named = [
    [userHeader, user],
    ...(uid ? [[uidHeader, uid]] : []),
    ...groups.map((group) => [groupHeader, group]),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => [`${extraHeaderPrefix}${escapedKey(key)}`, value]),
    ),
  ]
  return [...kept, ...named.flatMap(([name = '', value = '']) => [name, headerValue(value)])]
}

/** As bytes of UTF-8, which Go's server reads as they are. */
function headerValue(value: string): string {
  for (const character of value) {
    const code = character.charCodeAt(0)
    if (code < 0x20 || code === 0x7f) {
      throw new ApiError('BadRequest', 'the name of the user or of a group has a character that no header can have')
    }
  }
  return Buffer.from(value, 'utf8').toString('latin1')
}

/** What a name of a header cannot have, and what could stand for it, as `%2F` (headerKeyEscape). */
function escapedKey(key: string): string {
  return [...Buffer.from(key, 'utf8')]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      const isLegal = /[!#$&'*+\-.^_`|~0-9A-Za-z]/.test(character)
      return isLegal ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}
