/** Follows the objects from which the configuration of the proxy and the addresses of Ingresses are made. */
import type { Ingress } from '../../../api/network/ingress.ts'
import type { IngressClass } from '../../../api/network/ingress-class.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { isHeld } from '../../store/checkpoints/checkpoint-data.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { type Informer, informer, keyFrom, keyText } from '../../store/informer.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { isReadyPod } from '../workloads/pod-readiness.ts'
import { hasPodIPv6, internalAddresses, proxyAddresses, reachedAt } from './ingress-addresses.ts'
import { ingressControllerName, ingressNamespace, proxyPodLabels } from './proxy-objects.ts'

/** What may have to be done after a change; `left`: an Ingress is no longer ours. */
export type IngressChange = 'configuration' | 'addresses' | 'proxy' | { readonly left: string }

export type References = { readonly services: ReadonlySet<string>; readonly secrets: ReadonlySet<string> }

export interface IngressSources {
  isOurs(ingress: Ingress): boolean
  ours(): readonly StoredObject<'ingresses'>[]
  ingress(key: string): StoredObject<'ingresses'> | undefined
  service(key: string): StoredObject<'services'> | undefined
  /** Not one that waits for an operator after a restore. */
  secret(key: string): StoredObject<'secrets'> | undefined
  /** Addresses of nodes whose proxy is ready. */
  addresses(): readonly string[]
  /** Addresses of all nodes. */
  nodeAddresses(): ReadonlySet<string>
  /** Services and Secrets that Ingresses name: only changes of these are passed on. */
  refer(to: References): void
  catchUp(): void
  readonly listed: Promise<unknown>
  readonly loops: readonly Loop[]
}

const classAnnotation = 'kubernetes.io/ingress.class'

export function ingressSources(
  needs: { readonly store: Store; readonly clock: Clock; readonly log: Log; readonly ipv6: boolean },
  changed: (what: IngressChange) => void,
): IngressSources {
  let references: References = { services: new Set(), secrets: new Set() }
  const isOurs = (ingress: Ingress | undefined) => isServed(namedClass(ingress))
  const isServed = (name = '') => name !== '' && isOurClass(classes.get({ namespace: '', name }))

  const classes: Informer<'ingressclasses'> = informer(needs, 'ingressclasses', (present, previous) => {
    changed('proxy')
    if (isOurClass(present) === isOurClass(previous)) return
    changed('configuration')
    changed('addresses')
    if (isOurClass(present)) return
    const name = (present ?? previous)?.metadata.name
    for (const one of ingresses.all()) {
      if (namedClass(one) === name) changed({ left: keyText(one.metadata) })
    }
  })
  const ingresses: Informer<'ingresses'> = informer(needs, 'ingresses', (present, previous) => {
    const [is, was] = [isOurs(present), isOurs(previous)]
    if (was && !is && present !== undefined) changed({ left: keyText(present.metadata) })
    if (!is && !was) return
    if (is) changed('addresses')
    if (is && was && isSameIngress(present, previous)) return
    changed('configuration')
  })
  const services = informer(needs, 'services', (present, previous) => {
    if (!references.services.has(keyText((present ?? previous)?.metadata ?? {}))) return
    if (!isSameService(present, previous)) changed('configuration')
  })
  const secrets = informer(needs, 'secrets', (present, previous) => {
    const key = keyText((present ?? previous)?.metadata ?? {})
    if (!references.secrets.has(key)) return
    const usable = [present, previous].map((one) => one !== undefined && !isHeld(one))
    const isOther = present?.type !== previous?.type || !equalJSON(present?.data, previous?.data)
    if (isOther || usable[0] !== usable[1]) changed('configuration')
  })
  const pods = informer(needs, 'pods', (present, previous) => {
    if (!isProxy(present ?? previous)) return
    if (placeOf(present) !== placeOf(previous) || present?.metadata.deletionTimestamp !== undefined)
      changed('addresses')
  })
  const nodes = informer(needs, 'nodes', (present, previous) => {
    if (!equalJSON(reachedAt(present, needs.ipv6), reachedAt(previous, needs.ipv6))) changed('addresses')
  })

  const all = [classes, ingresses, services, secrets, pods, nodes] as const
  return {
    isOurs,
    ours: () => [...ingresses.all()].filter(isOurs),
    ingress: (key) => ingresses.get(keyFrom(key)),
    service: (key) => services.get(keyFrom(key)),
    secret: (key) => {
      const found = secrets.get(keyFrom(key))
      return found === undefined || isHeld(found) ? undefined : found
    },
    addresses() {
      const node = (name: string) => nodes.get({ namespace: '', name })
      return proxyAddresses([...pods.all()].filter(isProxy), node, needs.ipv6)
    },
    nodeAddresses: () => new Set([...nodes.all()].flatMap(internalAddresses)),
    refer(to) {
      references = to
    },
    catchUp() {
      for (const one of all) one.catchUp()
    },
    listed: Promise.all(all.map(({ listed }) => listed)),
    loops: [
      { name: 'ingress-classes', run: classes.run },
      // Whether an Ingress is ours is known by its class.
      { name: 'ingresses', run: (signal) => classes.listed.then(() => ingresses.run(signal)) },
      { name: 'ingress-services', run: services.run },
      { name: 'ingress-secrets', run: secrets.run },
      { name: 'ingress-pods', run: pods.run },
      { name: 'ingress-nodes', run: nodes.run },
    ],
  }
}

/** Whatever its name: users may make more classes of this controller. */
export function isOurClass(one: IngressClass | undefined): boolean {
  return one?.spec?.controller === ingressControllerName
}

/** Class in its spec, or in the older annotation. */
export function namedClass(ingress: Ingress | undefined): string | undefined {
  return ingress?.spec?.ingressClassName ?? ingress?.metadata.annotations?.[classAnnotation]
}

function isSameIngress(present: Ingress | undefined, previous: Ingress | undefined): boolean {
  return (
    equalJSON(present?.spec, previous?.spec) &&
    equalJSON(present?.metadata.annotations ?? {}, previous?.metadata.annotations ?? {})
  )
}

function isSameService(a: StoredObject<'services'> | undefined, b: StoredObject<'services'> | undefined): boolean {
  const [now, before] = [a?.spec, b?.spec]
  if (now === undefined || before === undefined) return now === before
  const isSameType = now.type === before.type && now.clusterIP === before.clusterIP
  return isSameType && equalJSON([now.clusterIPs, now.ports], [before.clusterIPs, before.ports])
}

function isProxy(pod: StoredObject<'pods'> | undefined): boolean {
  const labels = pod?.metadata.labels ?? {}
  const isLabelled = Object.entries(proxyPodLabels).every(([key, value]) => labels[key] === value)
  return isLabelled && pod?.metadata.namespace === ingressNamespace
}

/** Where a proxy is ready, and whether by IPv6 too; undefined: nowhere. */
function placeOf(pod: StoredObject<'pods'> | undefined): string | undefined {
  return pod && isReadyPod(pod) ? `${pod.spec.nodeName} ${hasPodIPv6(pod)}` : undefined
}
