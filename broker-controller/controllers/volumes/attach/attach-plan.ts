/** To which nodes a volume of a CSI driver is attached, and from which it is detached (reconcile in pkg/controller/volume/attachdetach). Pure. */

/** The state of a node that counts for its volumes. */
export type AttachNode = {
  readonly isReady: boolean
  /** An operator has set the taint `node.kubernetes.io/out-of-service`: the machine does not run. */
  readonly isOutOfService: boolean
  /** It reports that the volume is, or may be, mounted. */
  readonly hasInUse: boolean
}

export type PresentAttachment = { readonly node: string; readonly isDeleting: boolean }

export type AttachFacts = {
  /** Several nodes may have it at a time. */
  readonly isShared: boolean
  /** The nodes with a pod that uses it. */
  readonly wanted: ReadonlySet<string>
  /** VolumeAttachments, whether their attacher has attached them or not: it may be doing that. */
  readonly present: readonly PresentAttachment[]
  /** undefined: there is no such Node. */
  readonly node: (name: string) => AttachNode | undefined
  /** By node: since when no pod there uses it. */
  readonly unwantedSinceMs: ReadonlyMap<string, number>
  readonly nowMs: number
}

export type AttachStep =
  | { readonly kind: 'attach'; readonly node: string }
  | { readonly kind: 'detach'; readonly node: string; readonly isForced: boolean }
  /** It stays with `others`, so this node does not get it. */
  | { readonly kind: 'refuse'; readonly node: string; readonly others: readonly string[] }

export type AttachPlan = {
  readonly steps: readonly AttachStep[]
  /** Another step may be due then, without a change. */
  readonly nextMs?: number
}

/** The longest time that a node which is not ready keeps a volume (MaxWaitForUnmountDuration). */
export const longestUnmountMs = 6 * 60_000

export function attachPlan(facts: AttachFacts): AttachPlan {
  const { steps, kept, due } = detachSteps(facts)
  return { steps: [...steps, ...attachSteps(facts, kept)], ...(due.length > 0 && { nextMs: Math.min(...due) }) }
}

type Detachments = {
  readonly steps: readonly AttachStep[]
  /** The nodes that keep it. */
  readonly kept: readonly string[]
  readonly due: readonly number[]
}

function detachSteps({ wanted, present, node, unwantedSinceMs, nowMs }: AttachFacts): Detachments {
  const steps: AttachStep[] = []
  const due: number[] = []
  const kept: string[] = []
  for (const { node: name, isDeleting } of present) {
    if (isDeleting) continue
    if (wanted.has(name)) {
      kept.push(name)
      continue
    }
    const sinceMs = unwantedSinceMs.get(name) ?? nowMs
    const there = node(name)
    const decided = detachment(there, nowMs - sinceMs)
    if (decided === 'wait') kept.push(name)
    else steps.push({ kind: 'detach', node: name, isForced: decided === 'force' })
    if (decided === 'wait' && there?.isReady === false) due.push(sinceMs + longestUnmountMs)
  }
  return { steps, kept, due }
}

function attachSteps({ isShared, wanted, present, node }: AttachFacts, keeping: readonly string[]): AttachStep[] {
  const steps: AttachStep[] = []
  const kept = [...keeping]
  const held = new Set(present.map((one) => one.node))
  for (const name of [...wanted].sort()) {
    if (held.has(name) || node(name) === undefined) continue
    const others = isShared ? [] : kept.filter((other) => other !== name)
    if (others.length > 0) steps.push({ kind: 'refuse', node: name, others })
    // While it is being detached from another node it is attached nowhere: the next visit is when that is done.
    else if (isShared || held.size === 0) {
      steps.push({ kind: 'attach', node: name })
      held.add(name)
      kept.push(name)
    }
  }
  return steps
}

function detachment(node: AttachNode | undefined, unwantedMs: number): 'detach' | 'force' | 'wait' {
  if (node === undefined || !node.hasInUse) return 'detach'
  if (node.isOutOfService) return 'force'
  return !node.isReady && unwantedMs >= longestUnmountMs ? 'force' : 'wait'
}

/** What was recorded last of one VolumeAttachment. */
export type AttachMemory = { readonly askedMs: number; readonly last: string }

export type AttachState = {
  readonly attached: boolean
  readonly error?: { readonly time?: string; readonly message?: string }
}

/** The attacher is waited for so long until that is reported (watchTimeout of pkg/volume/csi). */
export const longestAttachMs = 2 * 60_000

/**
 * What happened to an attachment since the last visit. Without a memory of it another process has made it: that one has recorded that it is
 * attached.
 */
export function attachOutcome(
  memory: AttachMemory | undefined,
  { attached, error }: AttachState,
  nowMs: number,
): { readonly memory: AttachMemory; readonly happened?: 'attached' | 'failed' | 'late'; readonly nextMs?: number } {
  const { askedMs, last } = memory ?? { askedMs: nowMs, last: attached ? 'attached' : '' }
  if (attached) {
    const same = { memory: { askedMs, last: 'attached' } }
    return last === 'attached' ? same : { ...same, happened: 'attached' }
  }
  if (error !== undefined) {
    const now = `error ${error.time ?? ''} ${error.message ?? ''}`
    return { memory: { askedMs: nowMs, last: now }, ...(now !== last && { happened: 'failed' as const }) }
  }
  const dueMs = askedMs + longestAttachMs
  if (nowMs < dueMs) return { memory: { askedMs, last: last === 'attached' ? '' : last }, nextMs: dueMs }
  return { memory: { askedMs: nowMs, last: 'late' }, happened: 'late', nextMs: nowMs + longestAttachMs }
}
