/** Loop: keeps one pod of each DaemonSet on each eligible node (pkg/controller/daemon). */
import { hasEndedForGood } from '../../../../api/node/node-shutdown.ts'
import type { Node } from '../../../../api/node.ts'
import { isFinished } from '../../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../../api/pod.ts'
import { type DaemonSet, templateGenerationAnnotation } from '../../../../api/workloads/daemon-set.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { inParallel } from '../../../../daemon/in-parallel.ts'
import { eachInTurns, finishedInTurns, yieldTurn } from '../../../../daemon/limits/turn-limit.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { type Informer, informer } from '../../../store/informer.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { claimObjects } from '../claims.ts'
import { controllerOf } from '../controller-ref.ts'
import { type FailedPods, failedPods } from '../failed-pods.ts'
import { type HistoryNeeds, type PresentRevision, revisionHistory } from '../history/revision-history.ts'
import { revisionData, revisionLabel, type StoredRevision, surplusRevisions } from '../history/revisions.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { type OwnersInQueue, ownerLoop } from '../owner-loop.ts'
import { podControl } from '../pod-control.ts'
import { nextAvailableMs } from '../pod-readiness.ts'
import { selecting } from '../selecting.ts'
import { slowStart } from '../slow-start.ts'
import { daemonPlacement, daemonTemplate, isUpdatedDaemon, nodeOfDaemon, pinnedTo } from './daemon-placement.ts'
import { type DaemonFacts, type DaemonNode, daemonStatus, type EndedDaemon, planDaemons } from './daemon-plan.ts'
import { allowsDaemonSurge, type DaemonUpdate, planDaemonUpdate } from './daemon-update.ts'

type StoredDaemonSet = StoredObject<'daemonsets'>

const component = 'daemonset-controller'
const account = 'daemon-set-controller'
/** What is created, and what is deleted, in one visit at most (BurstReplicas). */
const mostAtOnce = 250
const deletionsAtOnce = 32
/** Between replacements of a failed pod on a node (pkg/controller/daemon: 15 minutes). */
const longestWaitMs = 15 * 60_000

/** What a visit reads and writes with. */
type Daemons = HistoryNeeds & {
  readonly pods: OwnedObjects<'pods'>
  readonly nodes: Informer<'nodes'>
  readonly failures: FailedPods
}

export function daemonSetController(needs: HistoryNeeds, pods: OwnedObjects<'pods'>): Loop {
  let sets: OwnersInQueue<'daemonsets'> | undefined
  const nodes = informer(needs, 'nodes', (present, previous) => {
    if (isSameForDaemons(present, previous)) return
    for (const set of sets?.all() ?? []) if (isConcerned(set, present, previous)) sets?.enqueue(set)
  })
  const daemons = { ...needs, pods, nodes, failures: failedPods(needs.clock, longestWaitMs) }
  const selects = selecting<StoredDaemonSet>(({ spec }) => spec.selector)
  const work = ownerLoop(needs, {
    name: 'daemonset',
    owners: 'daemonsets',
    dependents: pods,
    selects,
    concerns: isOtherDaemon,
    reconcile: visitWith(daemons, selects),
    connect(owners) {
      sets = owners
      needs.revisions.onChange((present, previous) => {
        // A new one is only noted (addHistory): its author may be about to replace another one by it.
        if (previous !== undefined) for (const revision of [present, previous]) enqueueOwnerOf(revision, owners)
      })
    },
  })
  const loops = [{ name: 'nodes', run: nodes.run }, work]
  return { name: 'daemonset', run: (signal) => runLoops(loops, signal, needs.log) }
}

function enqueueOwnerOf(revision: StoredRevision | undefined, owners: OwnersInQueue<'daemonsets'>): void {
  const reference = revision && controllerOf(revision)
  if (revision === undefined || reference?.kind !== 'DaemonSet') return
  const owner = owners.get({ namespace: revision.metadata.namespace ?? '', name: reference.name })
  if (owner?.metadata.uid === reference.uid) owners.enqueueNow(owner)
}

/** Only labels and taints of a node matter (shouldIgnoreNodeUpdate): its status changes all the time. */
function isSameForDaemons(present: Node | undefined, previous: Node | undefined): boolean {
  if (present === undefined || previous === undefined) return false
  return (
    equalJSON(present.metadata.labels ?? {}, previous.metadata.labels ?? {}) &&
    equalJSON(present.spec?.taints ?? [], previous.spec?.taints ?? [])
  )
}

function isConcerned(set: DaemonSet, present: Node | undefined, previous: Node | undefined): boolean {
  const [now, before] = [present, previous].map((node) => node && daemonPlacement(set.spec.template, node))
  return now?.shouldRun !== before?.shouldRun || now?.shouldContinue !== before?.shouldContinue
}

/** Whether a change of a pod may change what its set does or counts. */
function isOtherDaemon(present: StoredPod, previous: StoredPod): boolean {
  const seen = ({ metadata, spec, status }: StoredPod) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    const { deletionTimestamp = '', labels = {} } = metadata
    const { status: isReady = '', lastTransitionTime = '' } = ready ?? {}
    return [deletionTimestamp, labels, spec.nodeName ?? '', status?.phase ?? '', isReady, lastTransitionTime]
  }
  return !equalJSON(seen(present), seen(previous))
}

function visitWith(daemons: Daemons, selects: ReturnType<typeof selecting<StoredDaemonSet>>) {
  const { clock, nodes, pods } = daemons
  const control = podControl(daemons, component, account)
  const history = revisionHistory(daemons, 'daemonsets', { account, hashLabel: revisionLabel })

  return async (set: StoredDaemonSet, found: readonly StoredPod[]): Promise<Reconciled> => {
    const select = selects(set)
    if (select === undefined) return undefined
    if (Object.keys(set.spec.selector ?? {}).length === 0) {
      const message = 'This daemon set is selecting all pods. A non-empty selector is required.'
      await control.record(set, { type: 'Warning', reason: 'SelectingAll', message })
      return undefined
    }
    // Its pods and revisions are the garbage collector's now: neither can be counted on.
    if (set.metadata.deletionTimestamp !== undefined) return undefined
    await nodes.listed
    nodes.catchUp()
    const claim = { owners: 'daemonsets', owner: set, dependents: 'pods', selects: select } as const
    const own = await claimObjects(daemons, claim, found)
    const { template } = set.spec
    const revision = await history.present(set, await history.claim(set, select), {
      data: revisionData(template),
      labels: template.metadata?.labels,
      collisionCount: set.status?.collisionCount ?? 0,
    })
    const hash = hashOf(revision.current)
    await dropDuplicates(daemons, revision, own, history.delete)
    const failure = await act(daemons, control, set, { own, hash }).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    if (failure === undefined) await history.delete(surplusOf(set, revision, own))
    pods.catchUp()
    const now = [...pods.ofController(set)]
    await writeStatus(daemons, set, { own: now, hash, collisionCount: revision.collisionCount })
    if (failure !== undefined) throw failure.error
    return await requeueOf(daemons, set, now)
  }

  async function requeueOf(
    { failures }: Daemons,
    set: StoredDaemonSet,
    own: readonly StoredPod[],
  ): Promise<Reconciled> {
    const nowMs = clock.wallMs()
    const availableMs = await finishedInTurns(nextAvailableMs(own, set.spec.minReadySeconds ?? 0, nowMs))
    await yieldTurn()
    const waits = own
      .filter(
        (pod) => pod.status?.phase === 'Failed' && hasEndedForGood(pod) && pod.metadata.deletionTimestamp === undefined,
      )
      .map((pod) => failures.waitMs(failureKey(set, nodeOfDaemon(pod) ?? '')))
      .filter((waitMs) => waitMs > 0)
    const nextMs = Math.min(...waits, ...(availableMs === undefined ? [] : [availableMs - nowMs]))
    return Number.isFinite(nextMs) ? { requeueAfterMs: nextMs + 1 } : undefined
  }
}

type Own = { readonly own: readonly StoredPod[]; readonly hash: string }

/** Creates and deletes pods: first what each node lacks, and once nothing is lacking, the update. Throws the first error. */
async function act(
  daemons: Daemons,
  control: ReturnType<typeof podControl>,
  set: StoredDaemonSet,
  { own, hash }: Own,
): Promise<void> {
  const nodes = await nodesOf(daemons, set, own)
  const facts = factsOf(daemons, set, hash)
  await yieldTurn()
  const plan = planDaemons(nodes, facts)
  const gone = await deletableOf(daemons, control, set, plan.ended)
  const steps = { create: plan.create, delete: [...plan.delete, ...gone] }
  const isQuiet = steps.create.length + steps.delete.length === 0
  await yieldTurn()
  await write(control, set, isQuiet ? planDaemonUpdate(nodes, set.spec.updateStrategy, facts) : steps, hash)
}

async function write(
  control: ReturnType<typeof podControl>,
  set: StoredDaemonSet,
  steps: DaemonUpdate<StoredPod>,
  hash: string,
): Promise<void> {
  const template = daemonTemplate(set.spec.template, hash, generationOf(set))
  const targets = steps.create.slice(0, mostAtOnce)
  const { error } = await slowStart(targets.length, async (index) => {
    return (await control.create(set, template, (pod) => pinnedTo(pod, targets[index] ?? ''))) !== undefined
  })
  await inParallel(steps.delete.slice(0, mostAtOnce), deletionsAtOnce, (pod) => control.delete(set, pod))
  if (error !== undefined) throw error
}

/** The pods that ended and may be deleted now, each with its Event. */
async function deletableOf(
  { failures }: Daemons,
  control: ReturnType<typeof podControl>,
  set: StoredDaemonSet,
  ended: readonly EndedDaemon<StoredPod>[],
): Promise<readonly StoredPod[]> {
  const gone: StoredPod[] = []
  for (const { pod, node, phase } of ended) {
    const name = `${pod.metadata.namespace}/${pod.metadata.name} on node ${node}`
    if (phase === 'Succeeded') {
      const message = `Found succeeded daemon pod ${name}, will try to delete it`
      await control.record(set, { type: 'Normal', reason: 'SucceededDaemonPod', message })
    } else {
      const key = failureKey(set, node)
      if (failures.waitMs(key) > 0) continue
      failures.deleted(key)
      const message = `Found failed daemon pod ${name}, will try to kill it`
      await control.record(set, { type: 'Warning', reason: 'FailedDaemonPod', message })
    }
    gone.push(pod)
  }
  return gone
}

function failureKey({ metadata, status }: StoredDaemonSet, node: string): string {
  return `${metadata.uid}/${status?.observedGeneration ?? 0}/${node}`
}

function generationOf({ metadata }: DaemonSet): string | undefined {
  const text = metadata.annotations?.[templateGenerationAnnotation]
  return text !== undefined && /^\d{1,15}$/.test(text) ? text : undefined
}

function factsOf({ clock }: Daemons, set: StoredDaemonSet, hash: string): DaemonFacts {
  const generation = generationOf(set)
  return {
    isUpdated: (pod) => isUpdatedDaemon(pod, hash, generation),
    minReadySeconds: set.spec.minReadySeconds ?? 0,
    allowsSurge: allowsDaemonSurge(set.spec.updateStrategy),
    nowMs: clock.wallMs(),
  }
}

/** All nodes, and those that only the pods name. Many nodes take several turns of the event loop. */
async function nodesOf(
  { nodes }: Daemons,
  { spec }: StoredDaemonSet,
  own: readonly StoredPod[],
): Promise<readonly DaemonNode<StoredPod>[]> {
  const byNode = new Map<string, StoredPod[]>()
  for (const pod of own) {
    // Held by a finalizer, or about to be removed by its node.
    if (isFinished(pod) && pod.metadata.deletionTimestamp !== undefined) continue
    const name = nodeOfDaemon(pod)
    if (name === undefined) continue
    const present = byNode.get(name)
    if (present === undefined) byNode.set(name, [pod])
    else present.push(pod)
  }
  const known: DaemonNode<StoredPod>[] = []
  await eachInTurns([...nodes.all()], (node) => {
    const { name } = node.metadata
    const pods = byNode.get(name) ?? []
    byNode.delete(name)
    known.push({ name, exists: true, placement: daemonPlacement(spec.template, node), pods })
  })
  const placement = { shouldRun: false, shouldContinue: false }
  return [...known, ...[...byNode].map(([name, pods]) => ({ name, exists: false, placement, pods }))]
}

function hashOf({ metadata }: StoredRevision): string {
  return metadata.labels?.[revisionLabel] ?? metadata.name
}

/** Revisions of the same template become one; pods of the others get its label first (dedupCurHistories). */
async function dropDuplicates(
  daemons: Daemons,
  { current, duplicates }: PresentRevision,
  own: readonly StoredPod[],
  drop: (revisions: readonly StoredRevision[]) => Promise<void>,
): Promise<void> {
  if (duplicates.length === 0) return
  const [hash, others] = [hashOf(current), duplicates.map(hashOf)]
  for (const { metadata } of own) {
    if (!others.includes(metadata.labels?.[revisionLabel] ?? '')) continue
    const { name, namespace = '', uid } = metadata
    const change = (fresh: StoredPod) => {
      const labels = { ...fresh.metadata.labels, [revisionLabel]: hash }
      return { ...fresh, metadata: { ...fresh.metadata, labels } }
    }
    await rewrite(daemons, 'pods', { key: { namespace, name }, uid, change })
  }
  await drop(duplicates)
}

function surplusOf(
  { spec }: StoredDaemonSet,
  { old }: PresentRevision,
  own: readonly Pod[],
): readonly StoredRevision[] {
  const live = new Set(own.map(({ metadata }) => metadata.labels?.[revisionLabel]))
  return surplusRevisions(old, spec.revisionHistoryLimit ?? 10, (revision) => live.has(hashOf(revision)), 'all')
}

async function writeStatus(
  daemons: Daemons,
  set: StoredDaemonSet,
  { own, hash, collisionCount }: Own & { readonly collisionCount: number },
): Promise<void> {
  const { name, namespace = '', uid, generation } = set.metadata
  const nodes = await nodesOf(daemons, set, own)
  const facts = factsOf(daemons, set, hash)
  await yieldTurn()
  // Conditions are written by others: those that the store has stay.
  const statusAfter = ({ status }: StoredDaemonSet) =>
    daemonStatus(nodes, facts, { status, generation }, collisionCount)
  if (equalJSON(statusAfter(set), set.status)) return
  const change = (fresh: StoredDaemonSet) => ({ ...fresh, status: statusAfter(fresh) })
  await rewrite(daemons, 'daemonsets', { key: { namespace, name }, uid, part: 'status', change })
}
