/** Moves of a volume between the disks of two agents, by the controller, with what carries the copies. Each part ends at any step, and starts again. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { moveOf, moveToAnnotation } from '../api/storage/volume-move.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'
import { type VolumeMachines, volumeMachines } from './support/volume-machines.ts'

const skip = skipWithout('root', isRoot())
const mostTurns = 2_000

/** Runs until the move has ended; `kill` is called once, when a phase begins. */
async function moved(
  fleet: VolumeMachines,
  { phase, kill }: { phase: string; kill: () => Promise<void> },
): Promise<number> {
  let isKilled = false
  for (let turns = 1; turns <= mostTurns; turns++) {
    for (const node of fleet.machines.keys()) await fleet.turn(node)
    await fleet.settle(1_000)
    await setImmediate()
    const volume = await fleet.volume()
    const move = moveOf(volume)
    if (move?.phase === phase && !isKilled) {
      isKilled = true
      await kill()
    }
    if (move === undefined && volume.metadata.annotations?.[moveToAnnotation] === undefined) return turns
  }
  throw new Error('the move does not end')
}

async function thereAndBack(t: Test, phase: string): Promise<void> {
  const fleet = await volumeMachines(t)
  const claim = { claim: 'default/data', hasGroup: false }
  const placeOf = async () => {
    const { metadata, spec } = await fleet.volume()
    const { uid } = metadata
    const path = spec?.local?.path ?? ''
    const machine = [...fleet.machines.values()].find((one) => path.startsWith(`${one.path}/`))
    if (machine === undefined) throw new Error('it is in no pool')
    const hasData = metadata.annotations?.['bramble.dev/has-data'] === 'true'
    return machine.pool.folder({ ...claim, pool: machine.id, uid, path, hasData })
  }
  const before = await placeOf()
  await writeFile(join(before, 'file'), Buffer.alloc(200_000, 1))
  const { restartAgents } = fleet
  const restartController = async () => {
    await fleet.end()
    for (const stream of fleet.streams) stream.destroy()
    fleet.end = fleet.start()
  }
  for (const [to, kill] of [
    ['pi-2', restartAgents],
    ['pi-1', restartController],
  ] as const) {
    await writeFile(join(await placeOf(), `for-${to}`), to)
    await fleet.annotate({ [moveToAnnotation]: to })
    await moved(fleet, { phase, kill })
    const folder = await placeOf()
    t.ok(folder.startsWith(`${fleet.machines.get(to)?.path}/`), `${phase} ${kill.name}`)
    t.same((await readdir(folder)).sort(), to === 'pi-2' ? ['file', 'for-pi-2'] : ['file', 'for-pi-1', 'for-pi-2'])
    t.equal(await readFile(join(folder, `for-${to}`), 'utf8'), to)
    t.equal((await readFile(join(folder, 'file'))).length, 200_000)
  }
}

for (const phase of ['copy', 'hold', 'delta', 'place', 'clean']) {
  test(
    `a volume is moved there and back if agents, and then the controller, end in the phase ${phase}`,
    { skip },
    (t) => thereAndBack(t, phase),
  )
}
