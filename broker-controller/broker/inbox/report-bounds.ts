/** Bounds reports. A longer list or text is cut, so that a node cannot fill the store and its readers; addresses of pods are addresses. */
import { type NodeCondition, type NodeStatus, nodeConditionTypes } from '../../../api/node.ts'
import type { ContainerStatus, PodCondition, PodStatus } from '../../../api/pod.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import { withPairedPodIPs } from '../../../api/validation/address-pairs.ts'

/** `cut` names the fields that were longer than allowed, or had texts that are not addresses. */
export type Bounded<T> = { readonly status: T; readonly cut: readonly string[] }

const most = {
  conditions: 64,
  addresses: 64,
  /** Kinds of resources: a device plugin may have many. */
  resources: 128,
  images: 50, // nodeStatusMaxImages of the kubelet
  imageNames: 5, // MaxNamesPerImageInNodeStatus of the kubelet
  volumes: 512,
  containers: 256,
} as const

/** Characters; `type` and `reason` as in metav1.Condition of Kubernetes, whose message may be longer. */
const longest = { type: 316, reason: 1024, message: 4096, name: 1024 } as const

export function boundedNodeStatus(report: NodeStatus): Bounded<NodeStatus> {
  const cuts = cutter()
  const { conditions, addresses, images, volumesInUse, volumesAttached, capacity, allocatable } = report
  const status: NodeStatus = {
    ...report,
    ...(conditions && { conditions: cuts.conditions(ownFirst(conditions)) }),
    ...(addresses && { addresses: cuts.list('addresses', addresses, most.addresses) }),
    ...(images && {
      images: mapChanged(cuts.list('images', images, most.images), (image) => {
        const names = image.names && cuts.texts('images.names', image.names, most.imageNames)
        return names === image.names ? image : { ...image, names }
      }),
    }),
    ...(volumesInUse && { volumesInUse: cuts.texts('volumesInUse', volumesInUse, most.volumes) }),
    ...(volumesAttached && { volumesAttached: cuts.list('volumesAttached', volumesAttached, most.volumes) }),
    ...(capacity && { capacity: cuts.map('capacity', capacity) }),
    ...(allocatable && { allocatable: cuts.map('allocatable', allocatable) }),
  }
  return { status, cut: cuts.made() }
}

export function boundedPodStatus(report: PodStatus): Bounded<PodStatus> {
  const cuts = cutter()
  const { conditions, hostIP, hostIPs, podIP, podIPs, message, ...others } = report
  const { initContainerStatuses: init, containerStatuses: main, ephemeralContainerStatuses: ephemeral } = report
  const containers = (statuses: readonly ContainerStatus[]) => cuts.list('containerStatuses', statuses, most.containers)
  const [host, pod] = [cuts.address('hostIP', hostIP), cuts.address('podIP', podIP)]
  const status: PodStatus = {
    ...others,
    ...(host !== undefined && { hostIP: host }),
    ...(pod !== undefined && { podIP: pod }),
    ...(message !== undefined && { message: cuts.text('message', message, longest.message) }),
    ...(conditions && { conditions: cuts.conditions(conditions) }),
    ...(hostIPs && { hostIPs: cuts.addresses('hostIPs', hostIPs) }),
    ...(podIPs && { podIPs: cuts.addresses('podIPs', podIPs) }),
    ...(init && { initContainerStatuses: containers(init) }),
    ...(main && { containerStatuses: containers(main) }),
    ...(ephemeral && { ephemeralContainerStatuses: containers(ephemeral) }),
  }
  return { status: withPairedPodIPs(status), cut: cuts.made() }
}

/** The conditions of the API come first, so that only others are cut. */
function ownFirst(conditions: readonly NodeCondition[]): readonly NodeCondition[] {
  if (conditions.length <= most.conditions) return conditions
  const isOwn = ({ type }: NodeCondition) => (nodeConditionTypes as readonly string[]).includes(type)
  return [...conditions.filter(isOwn), ...conditions.filter((condition) => !isOwn(condition))]
}

function cutter() {
  const made = new Set<string>()
  const list = <T>(what: string, items: readonly T[], mostItems: number): readonly T[] => {
    if (items.length <= mostItems) return items
    made.add(what)
    return items.slice(0, mostItems)
  }
  const text = (what: string, value: string, longestText: number): string => {
    if (value.length <= longestText) return value
    made.add(what)
    return value.slice(0, longestText)
  }
  return {
    list,
    text,
    texts: (what: string, items: readonly string[], mostItems: number) =>
      mapChanged(list(what, items, mostItems), (item) => text(what, item, longest.name)),
    map<V>(what: string, values: { readonly [key: string]: V }): { readonly [key: string]: V } {
      const entries = Object.entries(values)
      return entries.length <= most.resources ? values : Object.fromEntries(list(what, entries, most.resources))
    },
    /** Endpoints have the addresses of pods: a text that is not an address would end up in the objects of a Service that many nodes serve. */
    address(what: string, value: string | undefined): string | undefined {
      if (value === undefined || value === '' || ipVersion(value) !== undefined) return value
      made.add(what)
      return undefined
    },
    /** At most one of each IP family (ValidatePodIPs of Kubernetes). */
    addresses<A extends { readonly ip: string }>(what: string, items: readonly A[]): readonly A[] {
      const versions = items.map(({ ip }) => ipVersion(ip))
      const kept = items.filter((_, at) => versions[at] !== undefined && versions.indexOf(versions[at]) === at)
      if (kept.length === items.length) return items
      made.add(what)
      return kept
    },
    conditions<C extends NodeCondition | PodCondition>(conditions: readonly C[]): readonly C[] {
      return mapChanged(list('conditions', conditions, most.conditions), (condition) => {
        const type = text('conditions.type', condition.type, longest.type)
        const reason = condition.reason && text('conditions.reason', condition.reason, longest.reason)
        const message = condition.message && text('conditions.message', condition.message, longest.message)
        if (type === condition.type && reason === condition.reason && message === condition.message) return condition
        return {
          ...condition,
          type,
          ...(reason !== undefined && { reason }),
          ...(message !== undefined && { message }),
        }
      })
    },
    made: () => [...made],
  }
}

/** The list itself if `change` returns every item unchanged: almost no report is cut, so this avoids most copies. */
function mapChanged<T>(items: readonly T[], change: (item: T) => T): readonly T[] {
  const changed = items.map(change)
  return changed.every((item, i) => item === items[i]) ? items : changed
}
