/** A namespace that shall go: first everything in it, then itself. */
import { isApiError } from '../../api/api-error.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Controller, runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { follow } from '../store/follow.ts'
import type { Store } from '../store/store.ts'
import { deleteOne } from './handlers/deleting.ts'
import type { KindRegistry } from './handlers/strategy.ts'

export type NamespaceDeletionNeeds = {
  readonly store: Store
  /** What may stand in a namespace. */
  readonly kinds: KindRegistry
  readonly clock: Clock
  readonly log: Log
}

/** Pods take their grace period; then it is looked again. */
const lookAgainMs = 1000

export function namespaceDeletion(needs: NamespaceDeletionNeeds): Loop {
  const { clock, log } = needs
  return {
    name: 'namespace-deletion',
    async run(signal) {
      const queue = workQueue(clock)
      const namespaces = follow(needs, 'namespaces', (present) => {
        if (present?.metadata.deletionTimestamp !== undefined) queue.add(present.metadata.name)
      })
      await Promise.all([namespaces.run(signal), runController(emptier(needs), queue, log, signal)])
    },
  }
}

function emptier({ store, kinds, clock, log }: NamespaceDeletionNeeds): Controller {
  return {
    name: 'namespace-deletion',
    async reconcile(name) {
      const key = { namespace: '', name }
      const namespace = await store.get('namespaces', key)
      if (namespace?.metadata.deletionTimestamp === undefined) return undefined
      if (await removeContents(name, { store, kinds, clock })) return { requeueAfterMs: lookAgainMs }
      const { uid, resourceVersion, finalizers = [] } = namespace.metadata
      if (finalizers.length > 0) return undefined // reconciled again when the last of them is removed
      await store.delete('namespaces', key, { uid, resourceVersion })
      log.info('Namespace removed', { namespace: name })
      return undefined
    },
  }
}

/** True while something is left. */
async function removeContents(
  namespace: string,
  needs: Pick<NamespaceDeletionNeeds, 'store' | 'kinds' | 'clock'>,
): Promise<boolean> {
  let left = false
  for (const resource of needs.kinds.all.filter(({ namespaced }) => namespaced)) {
    const { items } = await needs.store.list(resource.id, namespace)
    for (const { metadata } of items) {
      try {
        const { removed } = await deleteOne(resource, { key: { namespace, name: metadata.name } }, needs)
        left ||= !removed
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error
      }
    }
  }
  return left
}
