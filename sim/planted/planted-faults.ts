/** Faults that are planted into the compiled programs, to show that the rules of the simulator find them. */
import type { WorldKind } from '../worlds.ts'

export type PlantedFault = {
  readonly what: string
  /** Below the folder of the compiled programs. */
  readonly file: string
  readonly text: string
  readonly replacement: string
  readonly world: WorldKind
}

export const plantedFaults: { readonly [name: string]: PlantedFault } = {
  'early-eviction': {
    what: 'pods leave a lost node after a tenth of their tolerations',
    file: 'broker-controller/controllers/pods/taint-eviction.js',
    text: 'dueMs: nowMs + seconds * 1000',
    replacement: 'dueMs: nowMs + seconds * 100',
    world: 'workloads',
  },
  'fast-taints': {
    what: 'nodes get the NoExecute taint without a pause',
    file: 'broker-controller/controllers/node-lifecycle/rate-limited-queue.js',
    text: '            tokenAtMs = now + intervalMs();\n            return',
    replacement: '            tokenAtMs = now;\n            return',
    world: 'workloads',
  },
  'early-answer': {
    what: 'a write is answered and shown before it is on the disk, and a write that fails is not taken back',
    file: 'broker-controller/store/sqlite/write-batches.js',
    text: "log.error('Store cannot write', { path, error: cause, changes: written.changes.length });",
    replacement:
      'for (const { resource, change } of written.changes) cache.apply(resource, change); written.resolve();',
    world: 'workloads',
  },
  'lost-event': {
    what: 'one change in a hundred is not in the history that watches read',
    file: 'broker-controller/store/change-history.js',
    text: 'entries.push({ change, madeMs, bytes: size });',
    replacement: 'if (change.version % 100 !== 0) entries.push({ change, madeMs, bytes: size });',
    world: 'workloads',
  },
  'lost-tombstone': {
    what: 'an informer that lists again does not find what was deleted meanwhile',
    file: 'broker-controller/store/informer.js',
    text: 'if (present.get(metadata) === undefined)',
    replacement: 'if (false)',
    world: 'budgets',
  },
  'unwritten-deletion': {
    what: 'deletions are not written to the disk',
    file: 'broker-controller/store/sqlite/write-batches.js',
    text: 'filter(({ durable }) => durable)',
    replacement: "filter(({ durable, change }) => durable && change.type !== 'DELETED')",
    world: 'budgets',
  },
  'forgotten-end': {
    what: 'an agent does not remember the ends of containers',
    file: 'agent/pods/record/container-ends.js',
    text: "next.set(name, endOf(newest, facts.terminationMessages.get(newest.id) ?? ''));",
    replacement: ';',
    world: 'budgets',
  },
  'ignored-budget': {
    what: 'evictions ignore the disruption budget',
    file: 'broker-controller/apiserver/kinds/eviction-grant.js',
    text: 'const error = refusal(budget);',
    replacement: 'const error = undefined;',
    world: 'budgets',
  },
  'foreign-secret': {
    what: 'a node gets a Secret that its pods do not name',
    file: 'broker-controller/broker/outbox/desired-content.js',
    text: '[...secrets, ...secretsOfClaims(theirs)]',
    replacement: "[...secrets, ...secretsOfClaims(theirs), 'default/key-4']",
    world: 'budgets',
  },
  'outdated-desire': {
    what: 'an agent takes a message of the controller that is older than its last one, and ignores the newer one',
    file: 'agent/pods/wanted/desired-pods.js',
    text: 'known.version < message.version',
    replacement: 'known.version % 5 !== 0',
    world: 'workloads',
  },
  'skipped-sync': {
    what: 'the store answers writes that are not synced: a power cut loses the last of them',
    file: 'sim/world/store-file.js',
    text: '    unsynced = [];\n    };',
    replacement: '        if (unsynced.length > 40) unsynced = [];\n    };',
    world: 'budgets',
  },
  'forgotten-fence': {
    what: 'a controller writes to the store also when another one leads',
    file: 'broker-controller/store/etcd/etcd-writer.js',
    text: 'modRevision }, condition],',
    replacement: 'modRevision }],',
    world: 'controllers',
  },
  'second-instance': {
    what: 'a pod that leaves a lost node is removed before the node has confirmed its end',
    file: 'broker-controller/controllers/pods/taint-eviction-writes.js',
    text: 'removePod({ store, clock }, pod, { change })',
    replacement: 'removePod({ store, clock }, pod, { change, gracePeriodSeconds: 0 })',
    world: 'losses',
  },
  'no-hold': {
    what: 'after a restore controllers do not wait for the checkpoints of nodes',
    file: 'broker-controller/store/checkpoints/restore-hold.js',
    text: "    if (!isOpen)\n        return 'none';",
    replacement: "    if (openMs >= 0)\n        return 'none';",
    world: 'late-nodes',
  },
  'deleted-claims': {
    what: 'the claims of a StatefulSet go when it shrinks, against its policy',
    file: 'broker-controller/apiserver/kinds/workloads/stateful-set.js',
    text: "whenScaled: whenScaled || 'Retain'",
    replacement: "whenScaled: whenScaled || 'Delete'",
    world: 'claims',
  },
  'emptied-trash': {
    what: 'what is in the trash of a pool is removed at once',
    file: 'agent/pods/volumes/volume-trash.js',
    text: 'keptMs >= keepMs',
    replacement: 'keptMs >= 0',
    world: 'claims',
  },
}
