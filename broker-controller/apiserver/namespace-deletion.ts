/** Deletion of a namespace: first its content, then the namespace itself. */
import { isApiError } from '../../api/api-error.ts'
import { contentFinalizer, type Namespace } from '../../api/namespace.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { type Controller, runController } from '../../daemon/controller.ts'
import { messageOf } from '../../daemon/errors.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { informer } from '../store/informer.ts'
import { removeOrRewrite } from '../store/rewrite.ts'
import type { Store } from '../store/store.ts'
import type { ExtensionContent } from './aggregator/extension-content.ts'
import type { NamespaceContent, RemainingContent } from './aggregator/namespace-content.ts'
import { type DeletionResult, deleteEach } from './handlers/deleting.ts'
import type { KindRegistry, KindStrategy } from './handlers/strategy.ts'
import { deletionStatus } from './namespace-status.ts'

export type NamespaceDeletionNeeds = {
  readonly store: Store
  /** What may stand in a namespace. */
  readonly kinds: KindRegistry
  /** Deletes what extension servers have there; undefined: there are none. */
  readonly extensionContent?: ExtensionContent
  readonly clock: Clock
  readonly log: Log
}

/** An extension server that does not answer holds up the namespaces that are being looked at, and not the others (--concurrent-namespace-syncs). */
const atOnce = 10

/** Content that is left, such as pods within their grace period, is listed again after this time. */
const pollMs = 1000

export function namespaceDeletion(needs: NamespaceDeletionNeeds): Loop {
  const { clock, log } = needs
  return {
    name: 'namespace-deletion',
    async run(signal) {
      const queue = workQueue(clock)
      const namespaces = informer(needs, 'namespaces', (present) => {
        if (present?.metadata.deletionTimestamp !== undefined) queue.add(present.metadata.name)
      })
      await Promise.all([namespaces.run(signal), runController(emptier(needs), queue, log, signal, atOnce)])
    },
  }
}

function emptier(needs: NamespaceDeletionNeeds): Controller {
  const { store, log } = needs
  return {
    name: 'namespace-deletion',
    async reconcile(name, signal) {
      const key = { namespace: '', name }
      const namespace = await store.get('namespaces', key)
      if (namespace?.metadata.deletionTimestamp === undefined) return undefined
      const own = await removeContents(name, needs, signal)
      const others = signal.aborted ? undefined : await needs.extensionContent?.remove(name, signal)
      // What is left was not tried: the next controller goes on.
      if (signal.aborted) return undefined
      const content = together(own, others)
      const status = deletionStatus(namespace.status, content, rfc3339(needs.clock.wallMs()))
      if (status !== namespace.status) await store.updateStatus('namespaces', { ...namespace, status })
      const failures = [...content.failures, ...content.undiscovered.map((version) => `${version} does not answer`)]
      if (failures.length > 0) throw new Error(failures.join(', ')) // logged, and repeated with a growing pause
      if (content.remaining.length > 0) return { requeueAfterMs: pollMs }
      const isGone = await removeOrRewrite(needs, 'namespaces', {
        key,
        uid: namespace.metadata.uid,
        // One that is held is reconciled again when its last finalizer is removed.
        plan: (fresh) => (isHeld(fresh) ? undefined : 'remove'),
      })
      if (isGone) log.info('Namespace removed', { namespace: name })
      return undefined
    },
  }
}

/** By finalizers other than that of its content. */
function isHeld({ metadata, spec }: Namespace): boolean {
  const others = (spec?.finalizers ?? []).filter((name) => name !== contentFinalizer)
  return others.length > 0 || (metadata.finalizers ?? []).length > 0
}

/**
 * What creates pods goes before the pods, as each pod that goes would make work for it; the pods go before what they read while they
 * end.
 */
const firstKinds: readonly string[] = [
  'cronjobs',
  'deployments',
  'jobs',
  'replicasets',
  'replicationcontrollers',
  'statefulsets',
  'daemonsets',
  'pods',
]

function inDeletionOrder(kinds: readonly KindStrategy[]): readonly KindStrategy[] {
  const placeOf = ({ id }: KindStrategy) => (firstKinds.includes(id) ? firstKinds.indexOf(id) : firstKinds.length)
  return kinds.toSorted((a, b) => placeOf(a) - placeOf(b))
}

/**
 * Deletes what is in the namespace; returns what is left after that. A kind that fails does not keep the others from
 * being deleted (deleteAllContent in pkg/controller/namespace/deletion/namespaced_resources_deleter.go).
 */
async function removeContents(
  namespace: string,
  needs: NamespaceDeletionNeeds,
  signal: AbortSignal,
): Promise<Omit<NamespaceContent, 'undiscovered'>> {
  const remaining: RemainingContent[] = []
  const failures: string[] = []
  for (const kind of inDeletionOrder(needs.kinds.all.filter(({ namespaced }) => namespaced))) {
    if (signal.aborted) break
    try {
      const finalizers = await removeKind(kind, namespace, needs, signal)
      if (finalizers.length > 0) remaining.push({ kind, finalizers })
    } catch (error) {
      failures.push(`${kind.name}.${kind.group}: ${messageOf(error)}`)
    }
  }
  return { remaining, failures }
}

/** As Kubernetes empties a namespace (pkg/controller/namespace/deletion/namespaced_resources_deleter.go). */
const options = { propagationPolicy: 'Background' } as const

/** A turn of the event loop, with what follows from them in all controllers. */
const deletedTogether = 100

/** The finalizers of each object that is left. Throws the first failure, after it tried to delete all. */
async function removeKind(
  kind: KindStrategy,
  namespace: string,
  { store, clock }: NamespaceDeletionNeeds,
  signal: AbortSignal,
): Promise<readonly (readonly string[])[]> {
  const left: (readonly string[])[] = []
  const failures: unknown[] = []
  const { items } = await store.list(kind.id, namespace)
  for await (const results of deleteEach(kind, items, { options }, { store, clock }, deletedTogether)) {
    left.push(...results.flatMap(finalizersLeft))
    failures.push(...results.flatMap(failureOf))
    if (signal.aborted) break
  }
  if (failures.length > 0) throw failures[0]
  return left
}

type Deleted = PromiseSettledResult<DeletionResult>

/** None: the object is gone. */
function finalizersLeft(result: Deleted): readonly (readonly string[])[] {
  if (result.status === 'rejected' || result.value.removed) return []
  return [result.value.object.metadata.finalizers ?? []]
}

function failureOf(result: Deleted): readonly unknown[] {
  return result.status === 'fulfilled' || isApiError(result.reason, 'NotFound') ? [] : [result.reason]
}

type Contents = Awaited<ReturnType<typeof removeContents>>
type ExtensionContents = Awaited<ReturnType<NonNullable<NamespaceDeletionNeeds['extensionContent']>['remove']>>

function together(own: Contents, others: ExtensionContents | undefined) {
  const { remaining = [], failures = [], undiscovered = [] } = others ?? {}
  return { remaining: [...own.remaining, ...remaining], failures: [...own.failures, ...failures], undiscovered }
}
