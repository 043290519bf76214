/** Makes the objects of the proxy, keeps them as they are configured, and removes them. */
import type { Namespace } from '../../../api/namespace.ts'
import type { IngressClass } from '../../../api/network/ingress-class.ts'
import type { DaemonSet } from '../../../api/workloads/daemon-set.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { removeObject } from '../../store/object-removal.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'
import type { AdmittedCreation } from '../workloads/admitted-creation.ts'
import { writeAddresses } from './ingress-addresses.ts'
import type { IngressSettings } from './ingress-settings.ts'
import { isOurClass, namedClass } from './ingress-sources.ts'
import {
  enforcedLabels,
  ingressNamespace,
  isMade,
  proxyClass,
  proxyDaemonSet,
  proxyName,
  proxyNamespace,
} from './proxy-objects.ts'

export type ProxyNeeds = { readonly store: Store; readonly creation: AdmittedCreation; readonly clock: Clock }

/** Its account in kube-system, as which webhooks and quotas see it. */
const controller = 'ingress-controller'

/** Throws the ApiError of a refusal, also while the namespace is being deleted; then it is called again. */
export async function ensureProxy(needs: ProxyNeeds, settings: IngressSettings): Promise<void> {
  const { store, creation } = needs
  if ((await store.get('namespaces', { namespace: '', name: ingressNamespace })) === undefined) {
    await creation.create('namespaces', proxyNamespace(), controller)
  }
  await rewrite(needs, 'namespaces', { key: { namespace: '', name: ingressNamespace }, change: withEnforcedLevel })
  const wantedClass = proxyClass(settings)
  const classKey = { namespace: '', name: wantedClass.metadata.name ?? '' }
  if ((await store.get('ingressclasses', classKey)) === undefined) {
    await creation.create('ingressclasses', wantedClass, controller)
  }
  await rewrite(needs, 'ingressclasses', { key: classKey, change: (present) => withAnnotations(present, wantedClass) })
  const wanted = proxyDaemonSet(settings)
  const key = { namespace: ingressNamespace, name: proxyName }
  if ((await store.get('daemonsets', key)) === undefined) await creation.create('daemonsets', wanted, controller)
  await rewrite(needs, 'daemonsets', { key, change: (present) => withSpec(present, wanted) })
}

/** One that somebody else has made stays as it is. */
function withAnnotations<C extends IngressClass>(present: C, { metadata }: IngressClass): C | undefined {
  const annotations = { ...present.metadata.annotations, ...metadata.annotations }
  if (!isMade(present) || equalJSON(annotations, present.metadata.annotations ?? {})) return undefined
  return { ...present, metadata: { ...present.metadata, annotations } }
}

/** An earlier version made it without this label. What an operator has set stays. */
function withEnforcedLevel<N extends Namespace>(present: N): N | undefined {
  const labels = { ...enforcedLabels, ...present.metadata.labels }
  if (!isMade(present) || equalJSON(labels, present.metadata.labels ?? {})) return undefined
  return { ...present, metadata: { ...present.metadata, labels } }
}

function withSpec<D extends DaemonSet>(present: D, { spec }: DaemonSet): D | undefined {
  return equalJSON(present.spec, spec) ? undefined : { ...present, spec }
}

/** Removes what `ensureProxy` and the loop made, and the addresses of Ingresses; the class goes last, so that it can be repeated. */
export async function removeProxy(needs: ProxyNeeds): Promise<void> {
  const { store } = needs
  const classes = (await store.list('ingressclasses')).items
  const made = classes.filter(isMade)
  if (made.length === 0) return
  const names = new Set(classes.filter(isOurClass).map(({ metadata }) => metadata.name))
  const ingresses = (await store.list('ingresses')).items
  await writeAddresses(
    needs,
    ingresses.filter((one) => names.has(namedClass(one) ?? '')),
    [],
  )
  for (const resource of ['daemonsets', 'secrets'] as const) {
    for (const object of (await store.list(resource, ingressNamespace)).items) {
      if (isMade(object)) await removeObject(needs, resource, object)
    }
  }
  const namespace = await store.get('namespaces', { namespace: '', name: ingressNamespace })
  if (namespace !== undefined && isMade(namespace)) await removeObject(needs, 'namespaces', namespace)
  for (const one of made) await removeObject(needs, 'ingressclasses', one)
}
