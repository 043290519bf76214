/**
 * The headers with which a user acts as another one. Each part of the other identity must be allowed to the user, with the verb
 * `impersonate` (staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation.go). A header that cannot be followed is
 * refused: ignoring it would run the command as the caller.
 */
import type { IncomingMessage } from 'node:http'
import { authenticationGroup } from '../../../api/access/identity-review.ts'
import { serviceAccountGroups, serviceAccountOf } from '../../../api/access/service-account-names.ts'
import { ApiError } from '../../../api/api-error.ts'
import { anonymous, authenticatedGroup, type Identity } from '../../../api/identity.ts'
import { clipped } from '../../../api/problem.ts'
import type { Attributes, Authorizer } from '../handlers/authorizer.ts'
import { permit } from './authorizer.ts'

type Headers = { readonly [lowerCaseName: string]: string | readonly string[] | undefined }

const prefix = 'impersonate-'
const extraPrefix = 'impersonate-extra-'
/** More than any client sends; each part costs a decision. */
const mostParts = 200

/** The headers of a request, those of impersonation with each of their values: joined, a comma in a group would be two groups. */
export function headersOf(incoming: Pick<IncomingMessage, 'headers' | 'headersDistinct'>): Headers {
  const { headers } = incoming
  const names = Object.keys(headers).filter((name) => name.startsWith(prefix))
  if (names.length === 0) return headers
  const { headersDistinct } = incoming
  return { ...headers, ...Object.fromEntries(names.map((name) => [name, headersDistinct[name]])) }
}

/** The identity that the request is made as. Throws BadRequest for headers that are malformed, Forbidden for what is not allowed. */
export async function impersonated(identity: Identity, headers: Headers, access: Authorizer): Promise<Identity> {
  const requested = impersonationIn(headers)
  if (requested === undefined) return identity
  for (const attributes of attributesOf(requested)) await permit(access, identity, attributes)
  return identityOf(requested)
}

type ImpersonationRequest = {
  readonly user: string
  readonly groups: readonly string[]
  readonly uid: string | undefined
  readonly extra: ReadonlyMap<string, readonly string[]>
}

function impersonationIn(headers: Headers): ImpersonationRequest | undefined {
  const names = Object.keys(headers).filter((name) => name.startsWith(prefix))
  if (names.length === 0) return undefined
  const known = ['impersonate-user', 'impersonate-group', 'impersonate-uid']
  const unknown = names.find((name) => !known.includes(name) && !name.startsWith(extraPrefix))
  if (unknown !== undefined) throw malformed(`the header ${clipped(unknown)} is unknown`)
  const values = (name: string) => [headers[name] ?? []].flat().map(utf8)
  const extra = new Map(
    names
      .filter((name) => name.startsWith(extraPrefix))
      .map((name) => [unescaped(name.slice(extraPrefix.length)), values(name)] as const),
  )
  const [users, groups, uids] = [values('impersonate-user'), values('impersonate-group'), values('impersonate-uid')]
  if (users.length > 1 || uids.length > 1) throw malformed('more than one user or uid is requested')
  if (groups.length + [...extra.values()].flat().length > mostParts) {
    throw malformed(`more than ${mostParts} groups and extra values are requested`)
  }
  const [user = ''] = users
  if (user === '') throw malformed('groups, uid or extra values are requested without impersonating a user')
  if (groups.includes('')) throw malformed('a group without a name is requested')
  return { user, groups, uid: uids[0] || undefined, extra }
}

function malformed(because: string): ApiError {
  return new ApiError('BadRequest', `Cannot impersonate: ${because}`)
}

/** Node.js reads the bytes of a header as Latin-1; clients send UTF-8. */
function utf8(value: string): string {
  return Buffer.from(value, 'latin1').toString('utf8')
}

/** `bramble.dev%2fkey`. A key with an invalid encoding stays as it is, as in Kubernetes. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

function attributesOf({ user, groups, uid, extra }: ImpersonationRequest): readonly Attributes[] {
  const account = serviceAccountOf(user)
  const asked = (
    resource: string,
    name: string,
    more: Partial<Attributes & { kind: 'resource' }> = {},
  ): Attributes => ({
    kind: 'resource',
    verb: 'impersonate',
    group: '',
    resource,
    subresource: '',
    namespace: '',
    name,
    fields: new Map(),
    ...more,
  })
  return [
    account === undefined
      ? asked('users', user)
      : asked('serviceaccounts', account.name, { namespace: account.namespace }),
    ...groups.map((group) => asked('groups', group)),
    ...[...extra].flatMap(([key, values]) =>
      values.map((value) => asked('userextras', value, { group: authenticationGroup, subresource: key })),
    ),
    ...(uid === undefined ? [] : [asked('uids', uid, { group: authenticationGroup })]),
  ]
}

/** A service account has its groups; everybody but the anonymous user is authenticated. */
function identityOf({ user, groups: asked, uid, extra }: ImpersonationRequest): Identity {
  const account = serviceAccountOf(user)
  const groups = asked.length === 0 && account !== undefined ? serviceAccountGroups(account.namespace) : asked
  const [unauthenticated = ''] = anonymous.groups
  const isSettled = groups.includes(unauthenticated) || (user !== anonymous.user && groups.includes(authenticatedGroup))
  const added = user === anonymous.user ? unauthenticated : authenticatedGroup
  return {
    user,
    groups: isSettled ? groups : [...groups, added],
    ...(uid !== undefined && { uid }),
    ...(extra.size > 0 && { extra: Object.fromEntries(extra) }),
  }
}
