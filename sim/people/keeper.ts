/** A person whose workloads have claims: deletes pods and claims, makes them again, and takes data back from the trash. */
import type { FleetVolumes } from '../../api/storage/fleet-volumes.ts'
import { claimActs } from './claim-acts.ts'
import { personalRequests, type Requests } from './requests.ts'
import type { User, UserNeeds } from './user.ts'
import { claim, statefulSetWithClaims, type Workload, withClaim } from './workloads.ts'

const name = 'vault'
const most = 3

export function simulatedKeeper({ random, ...needs }: UserNeeds): User {
  const requests = personalRequests(needs)
  const { api, answered, written, create, remove } = requests
  const { place } = needs
  const { wanted, removed, apply, takeAway } = workloadsOf(requests)
  const removeAllAgain = async () => {
    for (const old of removed.values()) await remove(old)
  }
  const { removeClaimNow, removeAgain, undelete, deletePod } = claimActs(requests, needs, removeAllAgain)
  let ledger = 0

  const somePod = () => `${name}-${random.between(0, most - 1)}`
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
    () => deletePod(somePod(), false),
    () => deletePod(somePod(), true),
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

  return {
    wanted,
    async begin() {
      await apply(statefulSetWithClaims(name, 2))
      await makeLedger()
    },
    act: () => random.pick(actions)(),
    async repeat() {
      await removeAllAgain()
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

const keyOf = ({ resource, name: own }: Pick<Workload, 'resource' | 'name'>) => `${resource}/${own}`

/** What the person wants to be there, and has taken away. */
function workloadsOf({ create, remove }: Requests) {
  const wanted = new Map<string, Workload>()
  const removed = new Map<string, Workload>()
  return {
    wanted,
    removed,
    async apply(workload: Workload) {
      wanted.set(keyOf(workload), workload)
      removed.delete(keyOf(workload))
      await create(workload, workload.manifest)
    },
    async takeAway(workload: Workload) {
      wanted.delete(keyOf(workload))
      removed.set(keyOf(workload), workload)
      await remove(workload)
    },
  }
}
