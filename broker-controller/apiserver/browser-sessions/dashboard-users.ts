/** Who may use the dashboard. */
import { ApiError } from '../../../api/api-error.ts'
import { anonymous, bootstrappersGroup, type Identity, lapsedNodesGroup, nodeOf } from '../../../api/identity.ts'

/** Throws Unauthorized without an identity, and Forbidden for nodes and joining machines, which have certificates and tokens, too. */
export function refuseMachines(identity: Identity, path: string): void {
  const { user, groups } = identity
  const isMachine =
    nodeOf(identity) !== undefined || [bootstrappersGroup, lapsedNodesGroup].some((one) => groups.includes(one))
  if (user === anonymous.user) throw new ApiError('Unauthorized', 'Log in to the dashboard first')
  if (isMachine) throw new ApiError('Forbidden', `forbidden: User "${user}" cannot use path "${path}"`)
}
