/** The terms of a join, from a command or a file: the address, a token, and the authority to trust. */
import { parseToken, type TokenParts } from '../../api/node/bootstrap-token.ts'
import { isCaHash } from '../../certs/ca-hash.ts'

export type JoinTerms = { readonly url: URL; readonly token: TokenParts; readonly caHash: string }
export type TermsProblem = { readonly field: 'address' | 'token' | 'caHash'; readonly message: string }

/** The terms, or the first thing that is wrong with them; `message` continues after the name of the field. */
export function joinTerms(given: {
  readonly address: string
  readonly token: string | undefined
  readonly caHash: string | undefined
}): JoinTerms | TermsProblem {
  const { address } = given
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol !== 'https:' || url.hostname === '' || url.pathname !== '/') {
    return { field: 'address', message: `must be of the form https://HOST:PORT, not ${address}` }
  }
  const token = parseToken(given.token ?? '')
  if (token === undefined) {
    return { field: 'token', message: 'must be a token: six characters, a dot and sixteen characters, of a-z and 0-9' }
  }
  const caHash = given.caHash?.toLowerCase() ?? ''
  if (!isCaHash(caHash)) {
    return { field: 'caHash', message: 'must be sha256: and 64 hexadecimal digits, as the printed line has it' }
  }
  return { url, token, caHash }
}
