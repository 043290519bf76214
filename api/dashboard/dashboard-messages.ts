/**
 * What the dashboard of the controller sends to its page: short cards instead of whole objects, and the changes of them. A field that
 * is left out has its usual value. Times are seconds since 1970.
 */

/** `lost`: the controller has no contact. `not-ready`: the node reports why. `new`: it has not reported yet. */
export type NodeState = 'ready' | 'not-ready' | 'lost' | 'new'

export type NodeCard = {
  readonly name: string
  readonly state: NodeState
  /** One sentence: why it is not ready. */
  readonly why?: string
  /** Begin of this state. */
  readonly since?: number
  /** The last sign of life of a node that is lost. */
  readonly seen?: number
  readonly zone?: string
  readonly cordoned?: true
  /** Its agent restarts it on request. */
  readonly mayReboot?: true
  /** `now`: the supply voltage is too low; `before`: it was since the boot. undefined: fine, or not measured. */
  readonly underVoltage?: 'now' | 'before'
  /** Whether the machine measures its supply voltage. */
  readonly powerMeasured?: true
  /** How much of the life of its flash memory is used: `30 %`; undefined: it does not report it. */
  readonly wear?: string
  /** Other conditions that need attention, each with its message. */
  readonly problems?: readonly { readonly type: string; readonly message: string }[]
  readonly link?: 'weak'
  /** The link (`attic`, or an address) that is suspected: the node was lost together with others of it. */
  readonly lostLink?: string
  readonly pods: number
  readonly podCapacity?: number
  readonly memoryBytes?: number
  readonly cpus?: number
  /** Version of the agent. */
  readonly version?: string
  /** Operating system and architecture. */
  readonly system?: string
  readonly address?: string
  readonly created?: number
}

export type PodCard = {
  readonly name: string
  readonly namespace: string
  readonly node?: string
  /** As `kubectl get pods` prints it: `Running`, `CrashLoopBackOff`. */
  readonly status: string
  readonly phase: string
  /** `1/2` */
  readonly ready: string
  readonly isReady?: true
  readonly restarts?: number
  readonly created?: number
  /** One sentence: why it does not run, or is not ready. */
  readonly why?: string
  /** `DaemonSet/metrics` */
  readonly owner?: string
  /** Changes with every change of the pod. */
  readonly version: string
}

export type EventCard = {
  readonly id: string
  readonly namespace: string
  readonly warning?: true
  readonly reason: string
  readonly message: string
  /** `Pod/web` */
  readonly object: string
  readonly count?: number
  readonly at: number
}

export type WorkloadKind = 'Deployment' | 'StatefulSet' | 'DaemonSet'

export type WorkloadCard = {
  readonly kind: WorkloadKind
  readonly name: string
  readonly namespace: string
  readonly wanted: number
  readonly ready: number
  readonly updated: number
  readonly created?: number
  readonly why?: string
}

/** A certificate request of a machine that waits for approval. */
export type RequestCard = {
  readonly name: string
  readonly node: string
  readonly requester: string
  readonly at: number
}

/** CPU and memory in percent; degrees Celsius; disk in percent; load; seconds since 1970 of the boot. null: not known. */
export type UsageRow = readonly [
  cpu: number | null,
  memory: number | null,
  celsius: number | null,
  disk: number | null,
  load: number | null,
  booted: number | null,
]

export type CardChanges<T> = { readonly put?: readonly T[]; readonly gone?: readonly string[] }

/** The kinds of cards, and how each is called in an update. */
export type CardTypes = {
  readonly nodes: NodeCard
  readonly pods: PodCard
  readonly events: EventCard
  readonly workloads: WorkloadCard
  readonly requests: RequestCard
}
export type CardKind = keyof CardTypes

/** Which cards an identity may see: all, those of some namespaces, or none. */
export type ViewRights = {
  readonly nodes: boolean
  readonly usage: boolean
  readonly requests: boolean
  readonly pods: boolean | readonly string[]
  readonly events: boolean | readonly string[]
  readonly workloads: boolean | readonly string[]
}

/** One message of the stream. */
export type FleetUpdate = { readonly [K in CardKind]?: CardChanges<CardTypes[K]> } & {
  /** Forget all cards: those that are now visible follow. */
  readonly reset?: ViewRights
  /** All cards after a reset were sent. */
  readonly complete?: true
  /** By node, those that changed. */
  readonly usage?: { readonly [node: string]: UsageRow }
}

/** The session, as the page reads it. */
export type SessionAnswer = {
  readonly user: string
  readonly groups: readonly string[]
  readonly id: string
  readonly isKiosk: boolean
  /** For machines that join. */
  readonly server?: string
  readonly caHash?: string
  /** Raspberry Pi Imager can write cards from this controller. */
  readonly offersCards?: true
  readonly version: string
}

/** An open session in a list. `opened`: seconds since 1970. */
export type SessionRow = {
  readonly id: string
  readonly user: string
  readonly address: string
  readonly userAgent: string
  readonly opened: number
  /** It is the session of this request. */
  readonly isOwn?: true
}

/** A one-time link: the part behind `#login=`, and its end in seconds since 1970. */
export type LoginLinkAnswer = { readonly link: string; readonly expires: number }

/** Values of the last day, oldest first, one for each step; null: not known. */
export type NodeHistory = {
  readonly stepSeconds: number
  /** Time of the last value, seconds since 1970. */
  readonly until: number
  readonly cpu: readonly (number | null)[]
  readonly memory: readonly (number | null)[]
  readonly celsius: readonly (number | null)[]
  readonly disk: readonly (number | null)[]
}

export type ShownFinding = {
  /** `memory-cgroup` */
  readonly check: string
  /** `unknown`: it could not be checked. */
  readonly verdict: 'ok' | 'warning' | 'problem' | 'unknown'
  readonly found: string
  readonly remedy?: string
  /** What `bramble-agent doctor --fix` would do. */
  readonly fix?: string
}

/** What the doctor of a machine found just now. */
export type DoctorAnswer = { readonly time: string; readonly findings: readonly ShownFinding[] }

/** Names a card in `gone`. */
export const cardKeys: { readonly [K in CardKind]: (card: CardTypes[K]) => string } = {
  nodes: ({ name }) => name,
  pods: ({ namespace, name }) => `${namespace}/${name}`,
  events: ({ id }) => id,
  workloads: ({ kind, namespace, name }) => `${kind}/${namespace}/${name}`,
  requests: ({ name }) => name,
}
