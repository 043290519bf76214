/**
 * Who sent a request that another controller passes on. The header counts only on a connection whose certificate is that of a
 * controller; on all others it is ignored, and it is never passed on from a client.
 */
import { ApiError } from '../../../api/api-error.ts'
import { decode } from '../../../api/decode.ts'
import { type Identity, peerControllerIdentity } from '../../../api/identity.ts'
import { list, mapOf, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { identityHeader } from '../proxy/proxy-headers.ts'
import { type Replica, strangeController } from './replica.ts'

const senderSchema = object({
  identity: optional(
    object({ user: text, groups: list(text), uid: optional(text), extra: optional(mapOf(list(text))) }),
  ),
})

/** One header: names may have any character, and groups may have commas. `identity` undefined: the leader finds it out. */
export function identityHeaderValue(identity: Identity | undefined): string {
  return Buffer.from(JSON.stringify({ identity })).toString('base64url')
}

/** `via`: the controller that passed it on, by the fingerprint of its certificate; `address`: of the client there. */
export type RemoteSender = {
  readonly identity?: Identity
  readonly via: string
  readonly address: string | undefined
}

type ReceivedRequest = {
  readonly certificate:
    | { readonly trusted: boolean; readonly fingerprint?: string; readonly identity?: Identity | undefined }
    | undefined
  readonly headers: { readonly [lowerCaseName: string]: string | readonly string[] | undefined }
}

/**
 * undefined: no controller passed the request on. Throws BadRequest: one of another version may write the header in another
 * form; and ServiceUnavailable to one that is not known yet: an answer as to a client without rights would be final.
 */
export async function remoteSender(
  { certificate, headers }: ReceivedRequest,
  replica: Pick<Replica, 'isController'>,
): Promise<RemoteSender | undefined> {
  const value = headers[identityHeader]
  const { trusted = false, fingerprint, identity: shown } = certificate ?? {}
  if (typeof value !== 'string' || !trusted || fingerprint === undefined) return undefined
  if (!(await replica.isController(fingerprint))) {
    // Only the authority of the fleet issues it: its controller is being registered.
    if (shown?.user === peerControllerIdentity.user) throw strangeController()
    return undefined
  }
  const decoded = decode(senderSchema, parseJson(Buffer.from(value, 'base64url').toString('utf8')))
  if (!decoded.ok) throw new ApiError('BadRequest', `the header ${identityHeader} cannot be decoded`)
  const { identity } = decoded.value
  const address = lastOf(headers['x-forwarded-for'])
  if (identity === undefined) return { via: fingerprint, address }
  const { user, groups, uid, extra } = identity
  return {
    identity: { user, groups, ...(uid !== undefined && { uid }), ...(extra !== undefined && { extra }) },
    ...{ via: fingerprint, address },
  }
}

/** The controller added the address of its own connection at the end: what is before it is the client's word. */
function lastOf(forwardedFor: string | readonly string[] | undefined): string | undefined {
  const addresses = [forwardedFor ?? []].flat().flatMap((line) => line.split(','))
  return addresses.at(-1)?.trim()
}
