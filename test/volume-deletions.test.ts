/**
 * A model of deletions: people, several stores made of backups, controllers that work on old copies, and one node, whose decisions are those of
 * the agent. In 1,000 rounds no data may go to the trash that its store does not want there.
 */
import { test } from 'tap'
import { decodeOrders } from '../agent/pods/volumes/received-orders.ts'
import { distrust, type StoreTrust, trustAfter } from '../agent/pods/volumes/store-trust.ts'
import { otherVolume, type VolumeRecord } from '../agent/pods/volumes/volume-trash.ts'
import type { NodeVolumeOrder, VolumesMessage } from '../api/storage/volume-messages.ts'
import { deletionOrder, volumeDataFinalizer } from '../api/storage/volume-orders.ts'
import { planVolumeDeletion } from '../broker-controller/controllers/volumes/deletion-plan.ts'
import type { StoredVolume } from '../broker-controller/controllers/volumes/volume-index.ts'
import { planVolume } from '../broker-controller/controllers/volumes/volume-plan.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../broker-controller/testing/volume-objects.ts'
import { seededRandom } from '../daemon/testing/seeded-random.ts'

type StoredClaim = ReturnType<typeof aStoredClaim>
type State = { readonly claims: Map<string, StoredClaim>; readonly volumes: Map<string, StoredVolume> }
type Store = { readonly id: string; readonly heldUntilMs: number; state: State }
/** A process that leads, or believes that it does: it decides by what it has read. */
type Controller = { readonly store: Store; readonly epoch: string; seen: State; version: number }

const minute = 60_000
const pool = '11111111-1111-4111-8111-111111111111'
const annotations = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': pool }
const copied = ({ claims, volumes }: State): State => ({ claims: new Map(claims), volumes: new Map(volumes) })

function world(random: () => number) {
  let [nowMs, made] = [0, 0]
  const among = <T>(all: Iterable<T>): T | undefined => {
    const list = [...all]
    return list[Math.floor(random() * list.length)]
  }
  const next = (what: string) => `${what}-${++made}`
  const emptyState: State = { claims: new Map(), volumes: new Map() }
  const first: Store = { id: 's-0', heldUntilMs: 0, state: emptyState }
  const backups: State[] = []
  const start = (store: Store): Controller => ({ store, epoch: next('epoch'), seen: copied(store.state), version: 0 })
  const controllers: Controller[] = [start(first)]
  const sent: VolumesMessage[] = []

  // The node.
  const folders = new Map<string, { readonly lastClaim: string }>()
  const records = new Map<string, VolumeRecord>()
  const pods = new Map<string, { readonly volume: string; readonly store: Store; readonly claim: string }>()
  let connected: { readonly controller: Controller; readonly sinceMs: number } | undefined
  let trust: StoreTrust = { known: [] }
  let finished = new Set<string>()
  let last: VolumesMessage | undefined
  /** The store that people use: kept apart from what the agent keeps. */
  let owner: string | undefined
  const former = new Set<string>()
  let seenSince: { readonly store: string; readonly sinceMs: number } | undefined
  const wrong: string[] = []
  const counts = { trashed: 0, refused: 0, restored: 0, owners: 0 }

  const judge = (order: NodeVolumeOrder, store: Store) => {
    const volume = store.state.volumes.get(order.volume)
    const mine = folders.get(order.folder)
    const claim = [...store.state.claims.values()].find(({ metadata }) => metadata.uid === mine?.lastClaim)
    const must = (holds: boolean, why: string) => void (holds || wrong.push(`${order.volume} of ${store.id}: ${why}`))
    must(store.id === owner, `the machine belongs to ${owner}`)
    must(![...pods.values()].some((pod) => pod.volume === order.volume), 'a pod has it')
    must(volume === undefined || volume.metadata.deletionTimestamp !== undefined, 'it is not being deleted')
    must(volume?.status?.phase !== 'Bound', 'it is bound')
    must(order.claimUID === mine?.lastClaim, `its data is that of ${mine?.lastClaim}`)
    must(claim?.spec?.volumeName !== order.volume, `claim ${claim?.metadata.name} has it`)
  }
  const follow = (order: NodeVolumeOrder, controller: Controller): string | undefined => {
    const reason = distrust(trust, controller.store.id)
    if (reason !== undefined) return reason
    if ([...pods.values()].some((pod) => pod.volume === order.volume)) return 'mounted'
    const record = records.get(order.uid)
    if (record === undefined) return folders.has(order.folder) ? 'no record' : undefined
    const because = otherVolume(record, order)
    if (because !== undefined) return because
    if (folders.has(order.folder)) {
      judge(order, controller.store)
      counts.trashed += 1
      folders.delete(order.folder)
    }
    records.delete(order.uid)
    return undefined
  }
  const meetStore = () => {
    if (connected === undefined) return
    const { id } = connected.controller.store
    trust = trustAfter(trust, { store: id, nowMs, isEmpty: records.size === 0 })
    if (seenSince?.store !== id) seenSince = { store: id, sinceMs: nowMs }
    const isFirst = owner === undefined && records.size === 0
    const isNew = id !== owner && !former.has(id) && nowMs - seenSince.sinceMs >= 10 * minute
    if (!isFirst && !isNew) return
    if (owner !== undefined) former.add(owner)
    owner = id
    counts.owners += 1
  }
  const receive = (message: VolumesMessage) => {
    if (connected === undefined || message.epoch !== connected.controller.epoch) return
    if (last?.epoch === message.epoch && message.version < last.version) return
    last = message
    const decoded = decodeOrders(JSON.parse(JSON.stringify(message)))
    if (!decoded.ok) throw new Error('not decoded')
    for (const order of decoded.value.message.orders) {
      if (follow(order, connected.controller) === undefined) finished.add(order.uid)
      else counts.refused += 1
    }
  }

  // A controller decides by what it has seen, and writes over that version: a store that has changed refuses.
  const write = ({ store, seen }: Controller, volume: StoredVolume | undefined, name: string) => {
    if (store.state.volumes.get(name) !== seen.volumes.get(name)) return
    for (const { volumes } of [store.state, seen]) {
      if (volume === undefined) volumes.delete(name)
      else volumes.set(name, volume)
    }
  }
  const reconcile = (controller: Controller) => {
    const { store, seen } = controller
    const isHeld = nowMs < store.heldUntilMs
    for (const [name, volume] of seen.volumes) {
      const { claimRef } = volume.spec ?? {}
      // Claims are read from the store itself.
      const claim = [...store.state.claims.values()].find(({ metadata }) => metadata.name === claimRef?.name)
      const bound = planVolume({ volume, claim, usedBy: () => [], isHeld, nowMs })
      if (bound.write?.resource === 'persistentvolumes') {
        write(controller, bound.write.object, name)
        continue
      }
      const hasClaim = claim !== undefined && claim.metadata.uid === claimRef?.uid && claim.spec?.volumeName === name
      const isHere = connected?.controller === controller
      const report = isHere ? { done: finished, refused: new Map<string, string>() } : undefined
      const plan = planVolumeDeletion({ volume, hasClaim, holder: { node: 'pi-1', isReady: true, report }, isHeld })
      const { metadata } = volume
      if (plan.plan === 'release') write(controller, undefined, name)
      if (plan.plan !== 'delete') continue
      const marked = { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [volumeDataFinalizer] }
      write(controller, { ...volume, metadata: marked }, name)
    }
  }
  const publish = (controller: Controller) => {
    if (nowMs < controller.store.heldUntilMs) return
    controller.version += 1
    const orders = [...controller.seen.volumes.values()].flatMap((volume) => deletionOrder(volume) ?? [])
    const { epoch, version, store } = controller
    const message = { epoch, version, store: store.id, orders }
    sent.push(message)
    receive(message)
  }

  const addClaim = ({ state }: Store) => {
    const uid = next('claim')
    const [name, volume] = [uid, `pvc-${uid}`]
    state.claims.set(name, aStoredClaim(name, { metadata: { uid }, spec: { volumeName: volume } }))
    state.volumes.set(
      volume,
      aStoredVolume(volume, {
        metadata: { annotations, finalizers: [volumeDataFinalizer] },
        spec: {
          local: { path: `/pool/${volume}` },
          persistentVolumeReclaimPolicy: 'Delete',
          claimRef: claimRefTo(name, uid),
        },
        status: { phase: 'Bound' },
      }),
    )
  }
  const changeVolume = ({ state }: Store, change: (volume: StoredVolume) => StoredVolume | undefined) => {
    const volume = among(state.volumes.values())
    const changed = volume && change(volume)
    if (changed !== undefined) state.volumes.set(changed.metadata.name, changed)
  }
  /** By its owner after a release: the next claim of its name gets it. */
  const bindAgain = ({ state }: Store) =>
    changeVolume({ state } as Store, (volume) => {
      if (volume.status?.phase !== 'Released' || volume.metadata.deletionTimestamp !== undefined) return undefined
      const uid = next('claim')
      state.claims.set(uid, aStoredClaim(uid, { metadata: { uid }, spec: { volumeName: volume.metadata.name } }))
      return { ...volume, spec: { ...volume.spec, claimRef: claimRefTo(uid, uid) }, status: { phase: 'Bound' } }
    })
  const deleteClaim = (store: Store) => {
    const claim = among(store.state.claims.values())
    // A claim is protected by the pods of its own store, and by no others.
    const isUsed = [...pods.values()].some((pod) => pod.store === store && pod.claim === claim?.metadata.uid)
    if (claim !== undefined && !isUsed) store.state.claims.delete(claim.metadata.name)
  }
  const runPod = () => {
    const store = connected?.controller.store
    const claim = store && among(store.state.claims.values())
    const name = claim?.spec?.volumeName ?? ''
    const volume = store?.state.volumes.get(name)
    if (store === undefined || claim === undefined || volume === undefined) return
    if (volume.spec?.claimRef?.uid !== claim.metadata.uid) return
    const { uid } = volume.metadata
    const record = { uid, claim: `default/${claim.metadata.name}`, claimUID: claim.metadata.uid, folder: name }
    // Data that is missing is not made again.
    if (!folders.has(name) && records.has(uid)) return
    folders.set(name, { lastClaim: claim.metadata.uid })
    records.set(uid, record)
    pods.set(next('pod'), { volume: name, store, claim: claim.metadata.uid })
  }
  const anyController = () => among(controllers) ?? start(first)
  /** In place of one of the others, where there are many: that process has ended. */
  const addController = (store: Store) => {
    controllers.splice(Math.floor(random() * 4), controllers.length < 4 ? 0 : 1, start(store))
  }
  const acts: readonly (() => void)[] = [
    ...[runPod, runPod, runPod, runPod],
    () => void pods.delete(among(pods.keys()) ?? ''),
    () => void pods.delete(among(pods.keys()) ?? ''),
    ...Array.from({ length: 3 }, () => () => addClaim(anyController().store)),
    ...Array.from({ length: 3 }, () => () => deleteClaim(anyController().store)),
    () => bindAgain(anyController().store),
    () =>
      changeVolume(anyController().store, (volume) => ({
        ...volume,
        spec: { ...volume.spec, persistentVolumeReclaimPolicy: random() < 0.5 ? 'Retain' : 'Delete' },
      })),
    () =>
      changeVolume(anyController().store, (volume) => ({
        ...volume,
        metadata: { ...volume.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      })),
    ...Array.from({ length: 6 }, () => () => {
      const controller = anyController()
      // Not always: a controller that was frozen goes on with what it had read.
      if (random() < 0.7) controller.seen = copied(controller.store.state)
      reconcile(controller)
      publish(controller)
    }),
    () => {
      const replayed = among(sent)
      if (replayed !== undefined) receive(replayed)
    },
    () => void backups.push(copied(anyController().store.state)),
    () => {
      const backup = among(backups)
      if (backup === undefined) return
      counts.restored += 1
      addController({ id: next('s'), heldUntilMs: nowMs + 10 * minute, state: copied(backup) })
    },
    // A second process on one store, while the first one goes on.
    () => addController(anyController().store),
    ...Array.from({ length: 3 }, () => () => {
      const controller = random() < 0.15 ? undefined : anyController()
      connected = controller && { controller, sinceMs: nowMs }
      // Pods that the store does not have are stopped.
      for (const [pod, { store }] of pods) if (controller !== undefined && store !== controller.store) pods.delete(pod)
      last = undefined
      finished = new Set()
      meetStore()
    }),
    ...Array.from({ length: 4 }, () => () => {
      nowMs += Math.floor(random() * 8 * minute)
      meetStore()
    }),
  ]
  return { act: () => among(acts)?.(), wrong, counts }
}

test('in 1,000 rounds of restored, older and second controllers no data is deleted by mistake', async (t) => {
  const sum = { trashed: 0, refused: 0, restored: 0, owners: 0 }
  for (let seed = 1; seed <= 1000; seed++) {
    const { act, wrong, counts } = world(seededRandom(seed))
    for (let step = 0; step < 400; step++) act()
    if (wrong.length > 0) t.same(wrong, [], `seed ${seed}`)
    for (const key of ['trashed', 'refused', 'restored', 'owners'] as const) sum[key] += counts[key]
  }
  t.comment(JSON.stringify(sum))
  t.ok(sum.trashed > 1000, `deletions happen: ${sum.trashed}`)
  t.ok(sum.refused > 1000, `wrong orders come: ${sum.refused}`)
  t.ok(sum.restored > 1000 && sum.owners > 2000, `stores are restored, and become the present one: ${sum.owners}`)
})
