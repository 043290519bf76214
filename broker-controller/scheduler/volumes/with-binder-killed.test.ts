/** A controller that is killed again and again, between any two writes, beside a provisioner that is slow and at times refuses. */
import { type Test, test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { crashingStore } from '../../testing/crashing-store.ts'
import { onNodes, using } from '../../testing/pods-with-claims.ts'
import { type VolumeFleet, volumeFleet } from '../../testing/volume-fleet.ts'

const nodes = ['pi-1', 'pi-2', 'pi-3'] as const
const pods = 12
const lives = 8
/** Those before this one are killed after a few writes. */
const calmLife = 6

/** Takes one claim of three later, and refuses a third of the others. */
async function provision(world: VolumeFleet, random: () => number) {
  const present = new Set((await world.volumes()).map(({ metadata }) => metadata.name))
  for (const claim of await world.claims()) {
    const node = claim.metadata.annotations?.[volumeAnnotations.selectedNode]
    if (node === undefined || claim.spec?.volumeName || random() < 0.3) continue
    if (random() < 0.3) await world.reject(claim)
    else if (!present.has(`pvc-${claim.metadata.uid}`)) {
      await world.provision(claim, { storageClassName: 'late', ...onNodes(node) })
    }
  }
}

async function liveAndDie(world: VolumeFleet, random: () => number) {
  const below = (limit: number) => Math.floor(random() * limit)
  const crashing = crashingStore(world.store)
  for (let life = 0; life < lives; life++) {
    const isLast = life === lives - 1
    crashing.allow(life < calmLife ? below(pods) : Number.POSITIVE_INFINITY)
    const kill = world.live(crashing.store, random)
    const born = [0, 1, 2].map((one) => 3 * life + one).filter((number) => number < pods)
    await world.addPods(...born.map((number) => ({ name: `web-${number}`, spec: using(`data-${number}`) })))
    for (let round = 0; round < (isLast ? 60 : 3); round++) {
      await provision(world, random)
      await world.pass(isLast ? 5 : 2)
    }
    await kill()
  }
}

async function checkAll(t: Test, world: VolumeFleet) {
  const [claims, volumes] = [await world.claims(), await world.volumes()]
  for (let number = 0; number < pods; number++) {
    const node = (await world.pod(`web-${number}`))?.spec.nodeName ?? 'no node'
    const claim = claims.find(({ metadata }) => metadata.name === `data-${number}`)
    const volume = volumes.find(({ metadata }) => metadata.name === claim?.spec?.volumeName)
    const [term] = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
    const found = {
      phase: claim?.status?.phase,
      owner: volume?.spec?.claimRef?.uid,
      reachable: term?.matchExpressions?.[0]?.values?.includes(node),
    }
    t.same(found, { phase: 'Bound', owner: claim?.metadata.uid, reachable: true }, `web-${number} on ${node}`)
  }
  const owners = volumes.flatMap(({ spec }) => (spec?.storageClassName === 'fixed' ? (spec.claimRef?.uid ?? []) : []))
  t.equal(new Set(owners).size, owners.length, 'no claim holds two volumes')
}

test('a fleet with a killed controller ends with all pods at their volumes, and one volume for each claim', async (t) => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = seededRandom(seed)
    /** Killed processes log what they could not write. */
    const world = await volumeFleet({ ...t, fail: () => true }, ...nodes)
    for (let number = 0; number < pods; number++) {
      await world.addClaim(`data-${number}`, { storageClassName: number % 3 === 0 ? 'late' : 'fixed' })
    }
    for (let number = 0; number < 3 * pods; number++) {
      const storage = `${1 + Math.floor(random() * 4)}Gi`
      const place = onNodes(nodes[number % nodes.length] ?? '')
      await world.addVolume(`disk-${number}`, { storageClassName: 'fixed', ...place, capacity: { storage } })
    }
    await liveAndDie(world, random)
    await t.test(`seed ${seed}`, (sub) => checkAll(sub, world))
  }
})
