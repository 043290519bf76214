/**
 * Loop: makes sure the fleet has a Node object for this machine. Once per start, and once for each store the controller
 * comes with; deleted later it stays deleted.
 */

import { decode } from '../../../api/decode.ts'
import { leaseDurationAnnotation, usualLeaseDurationSeconds } from '../../../api/lease.ts'
import {
  describeHardware,
  type HardwareIdentity,
  HardwareIdentitySchema,
  hardwareIdentityAnnotation,
  sameMachine,
  trustedAuthoritiesAnnotation,
} from '../../../api/node/hardware-identity.ts'
import type { Node, NodeStatus, Taint } from '../../../api/node.ts'
import { parseJson } from '../../../api/text/json.ts'
import { aborted, unlessAborted } from '../../../daemon/aborted.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type ApiClient, statusMessage } from '../../../daemon/api-client.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'

export type RegistrationFacts = {
  readonly nodeName: string
  readonly operatingSystem: string
  readonly architecture: string
  readonly hardware: HardwareIdentity
  /** Additional ones of ours, for people. */
  readonly annotations: { readonly [name: string]: string }
  readonly nodeLabels: { readonly [name: string]: string }
  readonly taints: readonly Taint[]
  /** Hashes of the authorities this node trusts, the one that signs first. */
  readonly trusted?: readonly string[]
  /** Shown on the Node where it is longer than usual, for a controller that was restarted. */
  readonly leaseDurationSeconds?: number
}

/** The Node as it is created. Configured labels win over ours. */
export function nodeToRegister(facts: RegistrationFacts, status: NodeStatus): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: facts.nodeName,
      labels: { ...defaultLabels(facts), ...facts.nodeLabels },
      annotations: ownAnnotations(facts),
    },
    spec: facts.taints.length === 0 ? {} : { taints: facts.taints },
    status,
  }
}

export type NodePatch = {
  readonly metadata: {
    readonly labels?: { readonly [name: string]: string }
    readonly annotations?: { readonly [name: string]: string }
  }
}

/**
 * What must change on a Node that exists: our default labels and annotations only. Configured labels and taints are its
 * owner's from the first registration on, as with the kubelet. Undefined when nothing must.
 */
export function nodePatch(existing: Node, facts: RegistrationFacts): NodePatch | undefined {
  const labels = differences(existing.metadata.labels ?? {}, defaultLabels(facts))
  const present = existing.metadata.annotations ?? {}
  const annotations = differences(present, { ...leaseAnnotation(facts, present), ...ownAnnotations(facts) })
  if (labels === undefined && annotations === undefined) return undefined
  return { metadata: { ...(labels && { labels }), ...(annotations && { annotations }) } }
}

/** Another machine had this name before; undefined when it was this one, or nobody can tell. */
export function formerMachine(existing: Node, hardware: HardwareIdentity): HardwareIdentity | undefined {
  const written = existing.metadata.annotations?.[hardwareIdentityAnnotation]
  if (written === undefined) return undefined
  const before = decode(HardwareIdentitySchema, parseJson(written))
  return before.ok && !sameMachine(before.value, hardware) ? before.value : undefined
}

/**
 * The label with the host's name is the node's: what the kubelet writes there with --hostname-override, which is how a node
 * gets another name than its machine. Two nodes of one machine, or of one image of a card, are then two for the scheduler.
 */
function defaultLabels({ nodeName, operatingSystem, architecture }: RegistrationFacts) {
  return {
    'beta.kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': operatingSystem,
    'kubernetes.io/arch': architecture,
    'kubernetes.io/hostname': nodeName,
    'kubernetes.io/os': operatingSystem,
  }
}

/** Of a node whose lease is as usual only where it was not before: annotations are merged, not removed. */
function leaseAnnotation(
  { leaseDurationSeconds = usualLeaseDurationSeconds }: RegistrationFacts,
  present: Texts,
): Texts {
  const isNews = leaseDurationSeconds > usualLeaseDurationSeconds || leaseDurationAnnotation in present
  return isNews ? { [leaseDurationAnnotation]: String(leaseDurationSeconds) } : {}
}

function ownAnnotations(facts: RegistrationFacts): Texts {
  const { hardware, annotations, trusted = [] } = facts
  return {
    ...annotations,
    ...leaseAnnotation(facts, {}),
    [hardwareIdentityAnnotation]: JSON.stringify(hardware),
    'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
    ...(trusted.length > 0 && { [trustedAuthoritiesAnnotation]: trusted.join(',') }),
  }
}

type Texts = { readonly [name: string]: string }

function differences(have: Texts, want: Texts): Texts | undefined {
  const different = Object.entries(want).filter(([name, value]) => have[name] !== value)
  return different.length === 0 ? undefined : Object.fromEntries(different)
}

export type RegistrationNeeds = {
  readonly api: Pick<ApiClient, 'get' | 'post' | 'patch'>
  /** What is to be registered. */
  readonly facts: () => Promise<RegistrationFacts>
  /** The first status, which the new Node starts with. */
  readonly status: () => Promise<NodeStatus>
  /** The Node is there: what was said of it before may have been lost. */
  readonly registered: () => void
  readonly clock: Clock
  readonly log: Log
}

const idleMs = 24 * 3600_000

/**
 * The wait before each attempt, the first one too, in milliseconds: 100 ms doubling to 7 s, without jitter, as the kubelet's
 * `registerWithAPIServer` (pkg/kubelet/kubelet_node_status.go).
 */
export function registrationWaitMs(failures: number): number {
  return longestBackoffMs(failures, { firstMs: 100, maxMs: 7_000 })
}

export interface Registration {
  /** What is to be registered has changed. */
  again(): void
  /** The controller has this store. */
  store(id: string): void
  run(signal: AbortSignal): Promise<void>
}

export function registration(needs: RegistrationNeeds): Registration {
  const { api, clock, log } = needs
  const wake = alarm(clock)
  let registered = false
  let knownStore: string | undefined

  const register = async (facts: RegistrationFacts, status: NodeStatus, signal: AbortSignal): Promise<void> => {
    const { nodeName } = facts
    const created = await api.post('/api/v1/nodes', nodeToRegister(facts, status), signal)
    if (created.status === 201 || created.status === 200) return log.info('Node registered', { node: nodeName })
    const path = `/api/v1/nodes/${nodeName}`
    const existing = await api.get(path, signal)
    if (existing.status !== 200) throw refusal('create', nodeName, created)
    const node = existing.body as Node
    const former = formerMachine(node, facts.hardware)
    if (former !== undefined) {
      log.warn('This node was another machine before', {
        node: nodeName,
        before: describeHardware(former),
        now: describeHardware(facts.hardware),
      })
    }
    const patch = nodePatch(node, facts)
    if (patch === undefined) return log.info('Node is registered already', { node: nodeName })
    const patched = await api.patch(path, patch, 'application/merge-patch+json', signal)
    if (patched.status !== 200) throw refusal('update', nodeName, patched)
    log.info('Node is registered already, brought up to date', { node: nodeName, changed: Object.keys(patch.metadata) })
  }

  /** Until it is registered each distinct reason is told once: whoever mends one must see the next. */
  const told = new Set<string>()
  const tellFailure = (error: unknown) => {
    const { message } = error instanceof Error ? error : new Error(String(error))
    if (told.has(message)) return log.debug('Cannot register the node', { error })
    told.add(message)
    if (error instanceof RegistrationRefused) {
      return log.error('The node is refused, trying again now and then', { error, remedy: error.remedy })
    }
    log.warn('Cannot register the node yet, trying until it works', { error })
  }

  return {
    again() {
      registered = false
      wake.ring()
    },
    store(id) {
      if (knownStore !== undefined && knownStore !== id) {
        log.info('The controller has another store, registering there', { store: id, before: knownStore })
        registered = false
        wake.ring()
      }
      knownStore = id
    },
    async run(signal) {
      const status = await unlessAborted(needs.status(), signal)
      for (let failures = 0; status && !signal.aborted; ) {
        if (registered) {
          failures = 0
          await wake.sleep(idleMs, signal)
          continue
        }
        await clock.sleep(registrationWaitMs(failures), signal)
        if (signal.aborted) return
        try {
          registered = true
          const facts = await unlessAborted(needs.facts(), signal)
          if (facts === undefined) return
          await register(facts, status, signal)
          told.clear()
          needs.registered()
        } catch (error) {
          registered = false
          if (signal.aborted) return
          tellFailure(error)
          failures++
        }
      }
      await aborted(signal)
    },
  }
}

/** The API answered, and the answer is no. */
class RegistrationRefused extends Error {
  override readonly name = 'RegistrationRefused'
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

function refusal(verb: string, node: string, { status, body }: { readonly status: number; readonly body: unknown }) {
  return new RegistrationRefused(
    `Cannot ${verb} node ${node}: ${status} ${statusMessage(body) ?? ''}`,
    remedyFor(status),
  )
}

function remedyFor(status: number): string {
  switch (status) {
    case 401:
      return "The API does not accept this node's certificate. Join again with a new token: bramble-agent join …"
    case 403:
      return "This node's certificate is for another name, or a label is reserved: compare nodeLabels in the configuration with the message"
    case 422:
      return 'The message names the fields: correct nodeLabels or registerWithTaints in the configuration and start again'
    default:
      return "See the controller's log for the same moment"
  }
}
