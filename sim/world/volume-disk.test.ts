import { test } from 'tap'
import { beginLife } from './life.ts'
import { randomSource } from './random-source.ts'
import { simulatedTime } from './simulated-time.ts'
import { agentFolders, type VolumeData, volumeDisk } from './volume-disk.ts'

const pool = `${agentFolders.dataDirectory}/volumes`

function opened(seed = 1) {
  const time = simulatedTime()
  const changes: VolumeData[] = []
  const disk = { isFull: false, slowness: 1 }
  const files = volumeDisk({ time, random: randomSource(seed), disk, moved: (change) => void changes.push(change) })
  const life = beginLife({ time, random: () => 0 })
  /** Until it is done. */
  const done = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false
    void work.then(
      () => {
        isOver = true
      },
      () => {
        isOver = true
      },
    )
    await time.runUntil(time.nowMs + 60_000, () => isOver)
    return work
  }
  return { time, changes, disk, files, life, agent: files.seenBy(life), done }
}

test('a rename that was not flushed is lost with the power, or not; one that was flushed stays', async (t) => {
  const seen = new Set<boolean>()
  for (let seed = 0; seed < 20; seed++) {
    const { files, agent, done } = opened(seed)
    await done(agent.makeFolder(pool))
    await done(agent.makeFolder(`${pool}/kept`))
    await done(agent.rename(`${pool}/kept`, `${pool}/renamed`))
    files.powerCut()
    const names = await done(agent.names(pool))
    seen.add(names.includes('renamed'))
    t.equal(names.length, 1)
    const [name = ''] = names
    await done(agent.rename(`${pool}/${name}`, `${pool}/flushed`))
    await done(agent.sync(pool))
    files.powerCut()
    t.same(await done(agent.names(pool)), ['flushed'])
  }
  t.equal(seen.size, 2)
})

test('a change is kept without a flush after five seconds, and what is in memory is lost', async (t) => {
  for (let seed = 0; seed < 20; seed++) {
    const { time, files, agent, done } = opened(seed)
    await done(agent.makeFolder(pool))
    const early = await done(agent.freshFolder(pool, 'early-', 0o700))
    await done(agent.writeAside(`${agentFolders.memoryDirectory}/pods/a/claims/data`, '{}'))
    await time.runUntil(time.nowMs + 6_000)
    await done(agent.freshFolder(pool, 'late-', 0o700))
    files.powerCut()
    t.ok((await done(agent.names(pool))).includes(early.slice(pool.length + 1)), `seed ${seed}`)
    await t.rejects(done(agent.read(`${agentFolders.memoryDirectory}/pods/a/claims/data`)), { code: 'ENOENT' })
  }
})

test('data is followed to the trash and back, and into nothing', async (t) => {
  const { changes, files, agent, done } = opened()
  const trash = `${pool}/.bramble/trash/uid`
  for (const folder of [pool, `${pool}/a`, `${pool}/.bramble`, `${pool}/.bramble/trash`, trash])
    await done(agent.makeFolder(folder))
  t.equal(files.write(`${pool}/a`, 'd'), 'd')
  t.equal(files.write(`${pool}/a`, 'other'), 'd', 'what is there stays')
  t.equal(files.write(`${pool}/missing`, 'd'), undefined)
  await done(agent.rename(`${pool}/a`, `${trash}/data`))
  await done(agent.rename(`${trash}/data`, `${pool}/a`))
  files.loseAllBut(pool)
  await done(agent.removeFolder(`${pool}/a`))
  t.same(
    changes.map(({ place }) => place),
    ['volume', 'trash', 'volume', 'gone'],
  )
})

test('a call finds what is there after its wait', async (t) => {
  const { disk, agent, done } = opened()
  const folder = `${pool}/a`
  await done(agent.makeFolder(pool))
  const calls: readonly [string, () => Promise<unknown>][] = [
    ['replace', () => agent.replace(`${folder}/data.json`, '{}')],
    ['makeFolder', () => agent.makeFolder(`${folder}/b`)],
    ['freshFolder', () => agent.freshFolder(folder, 'new-', 0o700)],
    ['removeEmptyFolder', () => agent.removeEmptyFolder(folder)],
    ['sync', () => agent.sync(folder)],
  ]
  for (const [name, call] of calls) {
    await done(agent.makeFolder(folder))
    disk.slowness = 100
    const called = call()
    disk.slowness = 1
    await done(agent.removeFolder(folder))
    await t.rejects(done(called), { code: 'ENOENT' }, name)
    t.same(await done(agent.names(pool)), [], `${name} leaves nothing behind`)
  }
})

test('a full disk takes nothing, and nothing happens after the end of the program', async (t) => {
  const { disk, life, time, agent, done } = opened()
  await done(agent.makeFolder(pool))
  disk.isFull = true
  await t.rejects(done(agent.replace(`${pool}/pool.json`, '{}')), { code: 'ENOSPC' })
  disk.isFull = false
  let isAnswered = false
  void agent.replace(`${pool}/pool.json`, '{}').then(() => {
    isAnswered = true
  })
  life.end('killed')
  await time.runUntil(time.nowMs + 1_000)
  t.notOk(isAnswered)
})
