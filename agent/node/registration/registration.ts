/**
 * Loop: creates the Node object of this machine, or updates it. Once per start, and once for each store of the controller: a
 * Node that is deleted later stays deleted.
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
import { remoteRebootAnnotation } from '../../../api/node/reboot-annotations.ts'
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
  /** More annotations, for people. */
  readonly annotations: { readonly [name: string]: string }
  readonly nodeLabels: { readonly [name: string]: string }
  readonly taints: readonly Taint[]
  /** Hashes of the authorities this node trusts, the one that signs first. */
  readonly trusted?: readonly string[]
  /** An annotation of the Node if it is longer than usual, for a controller that was restarted. */
  readonly leaseDurationSeconds?: number
  /** The machine restarts when a client requests it; an annotation of the Node if it does. */
  readonly allowsRemoteReboot?: boolean
}

/** The Node as it is created. Configured labels override the defaults. */
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
 * The changes to an existing Node: default labels and annotations only. Configured labels and taints are set by the first
 * registration only, as by the kubelet. Undefined if there is nothing to change.
 */
export function nodePatch(existing: Node, facts: RegistrationFacts): NodePatch | undefined {
  const labels = differences(existing.metadata.labels ?? {}, defaultLabels(facts))
  const present = existing.metadata.annotations ?? {}
  const annotations = differences(present, {
    ...leaseAnnotation(facts, present),
    ...rebootAnnotation(facts, present),
    ...ownAnnotations(facts),
  })
  if (labels === undefined && annotations === undefined) return undefined
  return { metadata: { ...(labels && { labels }), ...(annotations && { annotations }) } }
}

/** The other machine that had this name before; undefined if it was this one, or the Node has no hardware identity. */
export function formerMachine(existing: Node, hardware: HardwareIdentity): HardwareIdentity | undefined {
  const written = existing.metadata.annotations?.[hardwareIdentityAnnotation]
  if (written === undefined) return undefined
  const before = decode(HardwareIdentitySchema, parseJson(written))
  return before.ok && !sameMachine(before.value, hardware) ? before.value : undefined
}

/**
 * `kubernetes.io/hostname` is the node's name, as the kubelet sets it with --hostname-override. So the scheduler distinguishes
 * two nodes of one machine, or of one image of a card.
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

/** For a usual lease only if the Node already has the annotation: annotations are merged, not removed. */
function leaseAnnotation(
  { leaseDurationSeconds = usualLeaseDurationSeconds }: RegistrationFacts,
  present: Texts,
): Texts {
  const isNeeded = leaseDurationSeconds > usualLeaseDurationSeconds || leaseDurationAnnotation in present
  return isNeeded ? { [leaseDurationAnnotation]: String(leaseDurationSeconds) } : {}
}

/** `disabled` only if the Node already has the annotation, as above. */
function rebootAnnotation({ allowsRemoteReboot = false }: RegistrationFacts, present: Texts): Texts {
  if (allowsRemoteReboot) return { [remoteRebootAnnotation]: 'enabled' }
  return remoteRebootAnnotation in present ? { [remoteRebootAnnotation]: 'disabled' } : {}
}

function ownAnnotations(facts: RegistrationFacts): Texts {
  const { hardware, annotations, trusted = [] } = facts
  return {
    ...annotations,
    ...leaseAnnotation(facts, {}),
    ...rebootAnnotation(facts, {}),
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
  /** What to register. */
  readonly facts: () => Promise<RegistrationFacts>
  /** The first status, which the new Node starts with. */
  readonly status: () => Promise<NodeStatus>
  /** Called when the Node exists: earlier reports may have been lost. */
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
  /** `facts` have changed. */
  again(): void
  /** Sets the ID of the controller's store. */
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
    if (existing.status !== 200) throw rejection('create', nodeName, created)
    const node = existing.body as Node
    const former = formerMachine(node, facts.hardware)
    if (former !== undefined) {
      log.warn('Another machine had the name of this node before', {
        node: nodeName,
        before: describeHardware(former),
        now: describeHardware(facts.hardware),
      })
    }
    const patch = nodePatch(node, facts)
    if (patch === undefined) return log.info('Node is registered already', { node: nodeName })
    const patched = await api.patch(path, patch, 'application/merge-patch+json', signal)
    if (patched.status !== 200) throw rejection('update', nodeName, patched)
    log.info('Node is registered already, updated', { node: nodeName, changed: Object.keys(patch.metadata) })
  }

  /** Each distinct reason is logged once until the node is registered: after one is fixed, the next must show. */
  const logged = new Set<string>()
  const logFailure = (error: unknown) => {
    const { message } = error instanceof Error ? error : new Error(String(error))
    if (logged.has(message)) return log.debug('Cannot register the node', { error })
    logged.add(message)
    if (error instanceof RegistrationRejected) {
      return log.error('The controller rejects this node, trying again until it accepts it', {
        error,
        remedy: error.remedy,
      })
    }
    log.warn('Cannot register the node yet, trying until it works', { error })
  }

  /** False if it failed; the signal may have aborted it. */
  const attempt = async (status: Awaited<ReturnType<typeof needs.status>>, signal: AbortSignal): Promise<boolean> => {
    try {
      registered = true
      const facts = await unlessAborted(needs.facts(), signal)
      if (facts === undefined) return true
      await register(facts, status, signal)
      logged.clear()
      needs.registered()
      return true
    } catch (error) {
      registered = false
      if (!signal.aborted) logFailure(error)
      return false
    }
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
        if (!(await attempt(status, signal))) failures++
      }
      await aborted(signal)
    },
  }
}

/** The API rejected the request. */
class RegistrationRejected extends Error {
  override readonly name = 'RegistrationRejected'
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

function rejection(verb: string, node: string, { status, body }: { readonly status: number; readonly body: unknown }) {
  return new RegistrationRejected(
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
