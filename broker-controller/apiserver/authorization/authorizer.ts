/** Decides whether an identity may do something: by the fixed rules of the system first, then by the roles that are bound to it. */
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, lapsedNodesGroup, mastersGroup, nodeOf } from '../../../api/identity.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, startLoops } from '../../../daemon/run.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import type { AccessDecision, Attributes, Authorizer } from '../handlers/authorizer.ts'
import { dependsOnPods, forbiddenMessage, isAllowedToSystem } from './authorization.ts'
import { boundPodsFor, isObjectAllowed } from './object-permission.ts'
import { type RoleIndex, roleIndex } from './rbac/role-index.ts'

export type AuthorizerNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** Its loop keeps the roles; the returned authorizer has those of now when the promise resolves. */
export async function openAuthorizer(needs: AuthorizerNeeds): Promise<Authorizer & Loop> {
  const { store, log } = needs
  const index = roleIndex()
  let revision = 0
  const counted =
    <O>(update: (present: O | undefined, previous: O | undefined) => void) =>
    (present: O | undefined, previous: O | undefined) => {
      revision += 1
      update(present, previous)
    }
  const kinds = [
    informer(needs, 'clusterroles', counted(index.updateRole)),
    informer(needs, 'roles', counted(index.updateRole)),
    informer(needs, 'clusterrolebindings', counted(index.updateBinding)),
    informer(needs, 'rolebindings', counted(index.updateBinding)),
  ]
  const loops = kinds.map((kind, at) => ({ name: `access-${at}`, run: kind.run }))
  const { running, run } = startLoops(loops, log)
  await Promise.race([Promise.all(kinds.map(({ listed }) => listed)), running])
  return {
    name: 'authorizer',
    rulesOf: index.rulesOf,
    rulesOfRole: index.rulesOfRole,
    decide: (identity, attributes) => decide(identity, attributes, index, store),
    revision: () => revision,
    run,
  }
}

async function decide(
  identity: Identity,
  attributes: Attributes,
  index: RoleIndex,
  store: Store,
): Promise<AccessDecision> {
  if (identity.groups.includes(mastersGroup)) return { allowed: true, reason: '' }
  if (await isSystemsOwn(identity, attributes, store)) return { allowed: true, reason: '' }
  // Until it has a new certificate, no role gives such a node any right.
  if (identity.groups.includes(lapsedNodesGroup)) return { allowed: false, reason: '' }
  return index.decide(identity, attributes)
}

async function isSystemsOwn(identity: Identity, attributes: Attributes, store: Store): Promise<boolean> {
  const node = nodeOf(identity)
  const boundPods =
    node !== undefined && dependsOnPods(identity, attributes) ? await boundPodsFor(node, attributes, store) : []
  return (
    isAllowedToSystem(identity, attributes, boundPods) &&
    (await isObjectAllowed(identity, attributes, boundPods, store))
  )
}

/** Throws Forbidden, in Kubernetes' words, unless the identity may. */
export async function permit(authorizer: Authorizer, identity: Identity, attributes: Attributes): Promise<void> {
  const { allowed, reason } = await authorizer.decide(identity, attributes)
  if (allowed) return
  const { kind } = attributes
  const details = kind === 'path' ? {} : { name: attributes.name, group: attributes.group, kind: attributes.resource }
  const message = forbiddenMessage(identity, attributes)
  throw new ApiError('Forbidden', reason === '' ? message : `${message}: ${reason}`, details)
}
