/** The interface of handlers to authorization: whether an identity may do something, and the rules that it has. */
import type { PolicyRule } from '../../../api/access/role.ts'
import type { RoleRef } from '../../../api/access/role-binding.ts'
import type { Identity } from '../../../api/identity.ts'

/** The attributes of a request that authorization depends on. */
export type Attributes =
  | {
      readonly kind: 'resource'
      /** One of the API's (`get`, `list`), or one that only rules name (`impersonate`, `bind`, `escalate`, `approve`). */
      readonly verb: string
      readonly group: string
      readonly resource: string
      readonly subresource: string
      readonly namespace: string
      /** Also when it comes from the field selector `metadata.name=NAME`. */
      readonly name: string
      /** What the field selector asks to be equal. */
      readonly fields: ReadonlyMap<string, string>
    }
  | { readonly kind: 'path'; readonly verb: string; readonly path: string }
export type AccessDecision = {
  readonly allowed: boolean
  /** The binding that allows it; otherwise the roles that bindings of this user name and that do not exist; '' without either. */
  readonly reason: string
}

export interface Authorizer {
  decide(identity: Identity, attributes: Attributes): Promise<AccessDecision>
  /** Rises with each change of a role or a binding: decisions that do not depend on other objects are the same until then. */
  revision(): number
  /** All that this user may do in the namespace; '': in no namespace. */
  rulesOf(identity: Identity, namespace: string): readonly PolicyRule[]
  /** The rules of a role that a binding in this namespace names; undefined: there is no such role. */
  rulesOfRole(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined
}
