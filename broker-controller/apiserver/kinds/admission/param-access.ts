/**
 * Whether the author of a policy or a binding may read the parameters that it names: the results of expressions reveal their contents
 * (pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go, validatingadmissionpolicybinding/authz.go).
 */
import type { ParamKind } from '../../../../api/admission/validating-admission-policy.ts'
import type { PolicyBindingSpec } from '../../../../api/admission/validating-admission-policy-binding.ts'
import { admissionGroup } from '../../../../api/admission/webhook.ts'
import type { Identity } from '../../../../api/identity.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import { forbidden, invalidObject } from '../../../../api/problem.ts'
import type { ResourceNeeds } from '../../handlers/strategy.ts'

/** Gives the object back, or throws Invalid. To be called once it has no other problems. */
export type ParamRefusal = <T extends AnyObject>(object: T) => T

const allowed: ParamRefusal = (object) => object

function refusal(field: string, because: string): ParamRefusal {
  return ({ kind, metadata }) => {
    throw invalidObject({ kind, group: admissionGroup }, metadata.name ?? '', [forbidden(field, because)])
  }
}

type AccessNeeds = Pick<ResourceNeeds, 'access' | 'kinds' | 'store'>
type Asked = { readonly verb: 'get' | 'list'; readonly namespace: string; readonly name: string }

/** The author of a policy must be able to read all objects of its paramKind. */
export async function refuseHiddenParamKind(
  paramKind: ParamKind | undefined,
  requester: Identity,
  needs: AccessNeeds,
): Promise<ParamRefusal> {
  if (paramKind === undefined) return allowed
  const { apiVersion = '', kind = '' } = paramKind
  const isAllowed = await mayRead(paramKind, { verb: 'get', namespace: '*', name: '*' }, requester, needs)
  if (isAllowed) return allowed
  const what = `(kind=${kind}, apiVersion=${apiVersion})`
  const because = `user ${requester.user} must have "get" permission on all objects of the referenced paramKind ${what}`
  return refusal('spec.paramKind', because)
}

/** The author of a binding must be able to read the objects that it names. */
export async function refuseHiddenParams(
  { policyName = '', paramRef }: PolicyBindingSpec,
  requester: Identity,
  needs: AccessNeeds,
): Promise<ParamRefusal> {
  if (paramRef === undefined) return allowed
  const policy = await needs.store.get('validatingadmissionpolicies', { namespace: '', name: policyName })
  const { name = '', namespace = '' } = paramRef
  const asked: Asked = { verb: name === '' ? 'list' : 'get', namespace, name }
  if (await mayRead(policy?.spec?.paramKind, asked, requester, needs)) return allowed
  const { user } = requester
  const because =
    policy === undefined
      ? `unable to get policy ${policyName} to determine minimum required permissions and user ${user} does not have "${asked.verb}" permission for all groups, versions and resources`
      : `user ${user} does not have "${asked.verb}" permission on the object referenced by paramRef`
  return refusal('spec.paramRef', because)
}

/** A kind that is not known stands for all. */
async function mayRead(
  paramKind: ParamKind | undefined,
  asked: Asked,
  requester: Identity,
  { access, kinds }: AccessNeeds,
): Promise<boolean> {
  const { apiVersion = '', kind = '' } = paramKind ?? {}
  const resource = kinds?.ofKind(apiVersion, kind)
  const group = paramKind === undefined ? '*' : apiVersion.includes('/') ? (apiVersion.split('/', 1)[0] ?? '') : ''
  const { allowed: isAllowed } = await access.decide(requester, {
    ...{ kind: 'resource', group, resource: resource?.name ?? '*', subresource: '', fields: new Map() },
    ...asked,
  })
  return isAllowed
}
