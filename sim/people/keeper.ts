/** A person whose workloads have claims: deletes pods and claims, makes them again, and takes data back from the trash. */
import type { FleetTrash, FleetVolumes } from '../../api/storage/fleet-volumes.ts'
import type { PersistentVolumeClaim } from '../../api/storage/persistent-volume-claim.ts'
import { undeletion } from '../../broker-controller/commands/volumes/restored-volume.ts'
import { personalRequests } from './requests.ts'
import type { User, UserNeeds } from './user.ts'
import { claim, statefulSetWithClaims, type Workload, withClaim } from './workloads.ts'

const core = '/api/v1/namespaces/default'
const claimPath = (name: string) => `${core}/persistentvolumeclaims/${name}`
const name = 'vault'
const most = 3

export function simulatedKeeper({ random, ...needs }: UserNeeds): User {
  const { api, answered, written, create, remove } = personalRequests(needs)
  const { story, place } = needs
  const wanted = new Map<string, Workload>()
  const removed = new Map<string, Workload>()
  const removedClaims = new Set<string>()
  let ledger = 0

  const keyOf = ({ resource, name: own }: Pick<Workload, 'resource' | 'name'>) => `${resource}/${own}`
  const apply = async (workload: Workload) => {
    wanted.set(keyOf(workload), workload)
    removed.delete(keyOf(workload))
    await create(workload, workload.manifest)
  }
  const takeAway = async (workload: Workload) => {
    wanted.delete(keyOf(workload))
    removed.set(keyOf(workload), workload)
    await remove(workload)
  }
  const presentClaim = async (of: string): Promise<PersistentVolumeClaim | undefined> => {
    const { status, body } = await answered(`read claim ${of}`, () => api.get(claimPath(of)))
    return status === 200 ? (body as PersistentVolumeClaim) : undefined
  }
  const removePods = async (app: string) => {
    const path = `${core}/pods?labelSelector=app%3D${app}`
    await answered(`delete pods of ${app}`, () => api.delete(path, undefined, {}))
  }
  /** This one, and no later one of its name. As kubectl it waits until the claim is gone; after a restore a pod may have it that no workload has. */
  const removeClaim = async (of: string, uid: string) => {
    removedClaims.add(uid)
    story.record({ kind: 'asked', claimUID: uid })
    const options = { propagationPolicy: 'Background', preconditions: { uid } }
    await answered(`delete claim ${of} (${uid})`, () => api.delete(claimPath(of), undefined, options))
    for (let looks = 1; (await presentClaim(of))?.metadata.uid === uid; looks++) {
      await place.life.clock.sleep(5_000)
      if (looks % 12 === 0) await removePods(of)
    }
  }
  const removeClaimNow = async (of: string) => {
    const uid = (await presentClaim(of))?.metadata.uid
    if (uid !== undefined) await removeClaim(of, uid)
  }

  const vault = () => wanted.get(`statefulsets/${name}`)
  const replicasOf = (workload: Workload | undefined) => Number(workload?.manifest.spec['replicas'] ?? 0)
  const scale = async (replicas: number) => {
    const next = statefulSetWithClaims(name, replicas)
    wanted.set(keyOf(next), next)
    const change = () => api.patch(`${next.path}/${name}`, { spec: { replicas } })
    written(next, await answered(`replicas ${replicas} of ${name}`, change))
  }
  const ledgerOf = (number: number) => withClaim(`ledger-${number}`, `ledger-${number}`)
  const ledgerClaim = (number: number) => claim(`ledger-${number}`)
  const makeLedger = async () => {
    const own = ledgerClaim(ledger)
    await create(own, own.manifest)
    await apply(ledgerOf(ledger))
  }
  const deletePod = async (isForced: boolean) => {
    const path = `${core}/pods/${name}-${random.between(0, most - 1)}`
    const { status, body } = await answered(`read ${path}`, () => api.get(path))
    const uid = (body as PersistentVolumeClaim).metadata?.uid
    if (status !== 200 || uid === undefined) return
    if (isForced) story.record({ kind: 'forced', podUID: uid })
    const options = { preconditions: { uid }, ...(isForced && { gracePeriodSeconds: 0 }) }
    const what = `delete ${path} ${isForced ? 'with force' : ''}`
    await answered(what, () => api.delete(path, undefined, options))
  }

  /** As `bramble-controller volumes undelete`. */
  const undelete = async ({ uid, claim: of = '', ...entry }: FleetTrash) => {
    const own = of.slice(of.indexOf('/') + 1)
    const present = await presentClaim(own)
    const classOf = () => ({ metadata: { name: 'local-path' }, provisioner: '', reclaimPolicy: 'Delete' }) as never
    const forClaim = { namespace: 'default', name: own, present, size: undefined, classOf }
    const plan = undeletion({ uid, claim: of, ...entry }, forClaim)
    if ('problem' in plan) return story.note(place.machine, `not undeleted: ${plan.problem}`)
    await answered(`undelete ${uid} for ${of}`, () => api.post('/api/v1/persistentvolumes', plan.volume))
    if (plan.claim !== undefined)
      await answered(`make claim ${own}`, () => api.post(`${core}/persistentvolumeclaims`, plan.claim))
  }
  const undeleteSome = async () => {
    const { status, body } = await answered('read the trash', () => api.get('/fleet/volumes'))
    const { trash = [] } = status === 200 ? (body as FleetVolumes) : {}
    const current = new Set([
      `default/ledger-${ledger}`,
      ...Array.from({ length: most }, (_, i) => `default/data-${name}-${i}`),
    ])
    const own = trash.filter((one) => current.has(one.claim ?? ''))
    if (own.length > 0) await undelete(random.pick(own))
  }

  const actions: readonly (() => Promise<void>)[] = [
    () => scale(random.between(0, most)),
    () => scale(random.between(0, most)),
    () => deletePod(false),
    () => deletePod(true),
    // The claims of a StatefulSet stay when it shrinks, and when it is deleted.
    async () => {
      const replicas = replicasOf(vault())
      if (replicas < most) await removeClaimNow(`data-${name}-${random.between(replicas, most - 1)}`)
    },
    async () => {
      const old = vault()
      if (old === undefined) return
      await takeAway(old)
      await apply(old)
    },
    async () => {
      await takeAway(ledgerOf(ledger))
      await apply(ledgerOf(ledger))
    },
    async () => {
      await takeAway(ledgerOf(ledger))
      await removeClaimNow(`ledger-${ledger}`)
      ledger += 1
      await makeLedger()
    },
    // The data of the present claim goes to the trash; it comes back, or a new claim takes its place.
    async () => {
      await takeAway(ledgerOf(ledger))
      await removeClaimNow(`ledger-${ledger}`)
      await place.life.clock.sleep(random.between(1_000, 60_000))
      if (random.isTrue(0.7)) await undeleteSome()
      await makeLedger()
    },
    undeleteSome,
  ]

  /** A claim that was deleted came back with a backup; a pod that uses it goes, and gets another one. */
  const removeAgain = async (of: string) => {
    const uid = (await presentClaim(of))?.metadata.uid
    if (uid === undefined || !removedClaims.has(uid)) return
    const [, pod] = /^data-(.*)$/.exec(of) ?? []
    const removing = removeClaim(of, uid)
    if (pod !== undefined) await answered(`delete pod ${pod}`, () => api.delete(`${core}/pods/${pod}`))
    await removing
  }

  return {
    wanted,
    async begin() {
      await apply(statefulSetWithClaims(name, 2))
      await makeLedger()
    },
    act: () => random.pick(actions)(),
    async repeat() {
      for (const old of removed.values()) await remove(old)
      for (let number = 0; number <= ledger; number++) await removeAgain(`ledger-${number}`)
      for (let i = 0; i < most; i++) await removeAgain(`data-${name}-${i}`)
      await makeLedger()
      const own = vault()
      if (own === undefined) return
      await create(own, own.manifest)
      await scale(replicasOf(own))
    },
  }
}
