/** The objects of parameters that a binding names (CollectParams in apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go). */
import type { ParamKind } from '../../../api/admission/validating-admission-policy.ts'
import type { ParamRef } from '../../../api/admission/validating-admission-policy-binding.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { labelMatcher, requirementsOf } from '../../../api/selectors.ts'
import type { Store } from '../../store/store.ts'
import { type KindRegistry, type KindStrategy, shownForm } from '../handlers/strategy.ts'

export type ParamNeeds = {
  readonly store: Pick<Store, 'get' | 'list'>
  readonly kinds: Pick<KindRegistry, 'ofKind'>
}

/** The kind of the parameters of a policy; a text: why there is none; undefined: it has no parameters. */
export function paramStrategy(
  paramKind: ParamKind | undefined,
  { kinds }: Pick<ParamNeeds, 'kinds'>,
): KindStrategy | string | undefined {
  if (paramKind === undefined) return undefined
  const { apiVersion = '', kind = '' } = paramKind
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  return (
    kinds.ofKind(apiVersion, kind) ??
    `failed to find resource referenced by paramKind: '${group}/${version}, Kind=${kind}'`
  )
}

/**
 * The parameters with which a write in this namespace is judged; a text: why there are none. undefined stands for no parameters: the
 * policy is evaluated once without. `namespace`: '' for an object of the cluster.
 */
export async function paramsOf(
  kind: KindStrategy | undefined,
  paramRef: ParamRef | undefined,
  namespace: string,
  { store }: Pick<ParamNeeds, 'store'>,
): Promise<readonly (AnyObject | undefined)[] | string> {
  if (kind === undefined || paramRef === undefined) return [undefined]
  const { name = '', namespace: own = '', selector, parameterNotFoundAction } = paramRef
  if (!kind.namespaced && own !== '') {
    return 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`'
  }
  const within = kind.namespaced ? own || namespace : ''
  if (kind.namespaced && within === '') {
    return 'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources'
  }
  const found = name === '' ? await selected() : await named()
  if (found.length === 0 && parameterNotFoundAction === 'Deny') {
    return 'no params found for policy binding with `Deny` parameterNotFoundAction'
  }
  return found.map((one) => shownForm(kind, one))

  async function named(): Promise<readonly AnyObject[]> {
    const object = kind && (await store.get(kind.id, { namespace: within, name }))
    return object === undefined ? [] : [object]
  }

  async function selected(): Promise<readonly AnyObject[]> {
    const requirements = requirementsOf(selector)
    if (kind === undefined || (requirements !== undefined && !requirements.ok)) return []
    const { items } = await store.list(kind.id, within || undefined)
    const matches = labelMatcher(requirements?.value ?? [])
    return items.filter(({ metadata }) => matches(metadata.labels))
  }
}
