/**
 * Loop: deletes the objects of a CustomResourceDefinition that is being deleted, and then lets it go (staging/src/k8s.io/
 * apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go).
 */
import { isApiError } from '../../api/api-error.ts'
import { isReleased } from '../../api/deletion/object-deletion.ts'
import { cleanupFinalizer } from '../../api/structural/custom-resource-definition.ts'
import { hasCondition, withDefinitionCondition } from '../../api/structural/definition-conditions.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { type Controller, runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { informer } from '../store/informer.ts'
import type { Store, StoredObject } from '../store/store.ts'
import { deleteEach } from './handlers/deleting.ts'
import type { KindRegistry } from './handlers/strategy.ts'

export type KindDeletionNeeds = {
  readonly store: Store
  readonly kinds: Pick<KindRegistry, 'get'>
  readonly clock: Clock
  readonly log: Log
}

type StoredDefinition = StoredObject<'customresourcedefinitions'>

/** Objects that their finalizers hold are listed again after this time. */
const pollMs = 1_000
/** A turn of the event loop, with what follows from them in all controllers. */
const deletedTogether = 100

export function kindDeletion(needs: KindDeletionNeeds): Loop {
  const { clock, log } = needs
  return {
    name: 'kind-deletion',
    async run(signal) {
      const queue = workQueue(clock)
      const definitions = informer(needs, 'customresourcedefinitions', (present) => {
        if (present !== undefined && isAwaited(present)) queue.add(present.metadata.name)
      })
      const work = (until: AbortSignal) => runController(cleaner(needs), queue, log, until)
      const loops = [
        { name: 'definitions', run: definitions.run },
        { name: 'work', run: work },
      ]
      await runLoops(loops, signal, log)
    },
  }
}

function isAwaited({ metadata }: StoredDefinition): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(cleanupFinalizer)
}

function cleaner(needs: KindDeletionNeeds): Controller {
  const { store, clock, log } = needs
  return {
    name: 'kind-deletion',
    async reconcile(name, signal) {
      const found = await store.get('customresourcedefinitions', { namespace: '', name })
      if (found === undefined || !isAwaited(found)) return undefined
      const definition = await inProgress(found, needs)
      const left = await deleteObjects(definition, needs, signal)
      if (signal.aborted) return undefined
      if (left > 0) return { requeueAfterMs: pollMs }
      const { uid, resourceVersion, finalizers = [] } = definition.metadata
      const rest = finalizers.filter((one) => one !== cleanupFinalizer)
      const condition = { status: 'False', reason: 'InstanceDeletionCompleted', message: 'removed all instances' }
      const status = withDefinitionCondition(
        definition.status,
        { type: 'Terminating', ...condition },
        rfc3339(clock.wallMs()),
      )
      const released = { ...definition, metadata: { ...definition.metadata, finalizers: rest }, status }
      if (isReleased(released)) {
        await store.delete('customresourcedefinitions', { namespace: '', name }, { uid, resourceVersion })
        log.info('Definition of a kind removed', { name })
      } else await store.update('customresourcedefinitions', released)
      return undefined
    },
  }
}

async function inProgress(
  definition: StoredDefinition,
  { store, clock }: KindDeletionNeeds,
): Promise<StoredDefinition> {
  const condition = {
    status: 'True',
    reason: 'InstanceDeletionInProgress',
    message: 'CustomResource deletion is in progress',
  }
  const status = withDefinitionCondition(
    definition.status,
    { type: 'Terminating', ...condition },
    rfc3339(clock.wallMs()),
  )
  if (status === definition.status) return definition
  return store.updateStatus('customresourcedefinitions', { ...definition, status })
}

/** How many are left. A kind that was never established has no objects. */
async function deleteObjects(
  definition: StoredDefinition,
  { store, kinds, clock }: KindDeletionNeeds,
  signal: AbortSignal,
): Promise<number> {
  if (!hasCondition(definition, 'Established')) return 0
  const { names, group } = definition.spec
  const kind = kinds.get(`${names.plural}.${group}`)
  if (kind === undefined) throw new Error(`The kind of ${definition.metadata.name} is not served`)
  const { items } = await store.list(kind.id)
  const failures: unknown[] = []
  for await (const results of deleteEach(kind, items, {}, { store, clock }, deletedTogether)) {
    for (const result of results) {
      if (result.status === 'rejected' && !isApiError(result.reason, 'NotFound')) failures.push(result.reason)
    }
    if (signal.aborted) break
  }
  if (failures.length > 0) throw failures[0]
  return (await store.list(kind.id)).items.length
}
