import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { isRoot, skipWithout } from '../../../test/support/missing-parts.ts'
import { AlreadyRunning, agentOn, lockDirectory } from './single-instance.ts'

const moduleUrl = new URL('./single-instance.js', import.meta.url).href

/** Another process that takes the directory, prints that, and then holds it. */
async function holder(t: Test, directory: string): Promise<{ output: string; child: ChildProcess }> {
  const program = `
    const { lockDirectory } = await import(${JSON.stringify(moduleUrl)})
    try { await lockDirectory(${JSON.stringify(directory)}); console.log('taken') }
    catch (error) { console.log(error.name) }
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const [output] = await once(child.stdout, 'data')
  return { output: String(output).trim(), child }
}

test('a second agent on one data directory is refused, and the error names the process that holds it', async (t) => {
  const directory = testFolder(t)
  const first = await holder(t, directory)
  t.equal(first.output, 'taken')
  await t.rejects(lockDirectory(directory), new AlreadyRunning(first.child.pid ?? 0, directory))
  t.equal(await agentOn(directory), first.child.pid)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  t.equal(await agentOn(directory), undefined)
  const lock = await lockDirectory(directory)
  t.equal(
    (await readFile(join(directory, 'agent.lock'), 'utf8')).split(' ')[0],
    String(process.pid),
    'a killed one has let go',
  )
  await lock.release()
  t.same(await readdir(directory), [], 'nothing is left behind')
})

test('another program with the number of a dead agent does not keep its place', async (t) => {
  const directory = testFolder(t)
  await writeFile(join(directory, 'agent.lock'), `${process.pid} earlier-boot/1\n`)
  const lock = await lockDirectory(directory)
  await lock.release()
})

test('a file cut short by a power cut names no owner', async (t) => {
  const directory = testFolder(t)
  await writeFile(join(directory, 'agent.lock'), '')
  await (await lockDirectory(directory)).release()
})

test('of many that start at one moment on a dead one’s place exactly one runs', async (t) => {
  const directory = testFolder(t)
  await writeFile(join(directory, 'agent.lock'), '999999 earlier-boot/1\n')
  const holders = await Promise.all(Array.from({ length: 4 }, () => holder(t, directory)))
  t.same(holders.map(({ output }) => output).toSorted(), [
    'AlreadyRunning',
    'AlreadyRunning',
    'AlreadyRunning',
    'taken',
  ])
})

test('of several that find the file of a dead one at the same time exactly one takes its place', async (t) => {
  const directory = testFolder(t)
  const outcomes = new Set<string>()
  for (let round = 0; round < 200; round++) {
    await writeFile(join(directory, 'agent.lock'), `999999 earlier-boot/${round}\n`)
    const tried = await Promise.allSettled(Array.from({ length: 6 }, () => lockDirectory(directory)))
    const locks = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const refused = tried.filter((one) => one.status === 'rejected' && one.reason instanceof AlreadyRunning)
    outcomes.add(`${locks.length} of them, ${refused.length} are refused`)
    for (const lock of locks) await lock.release()
  }
  t.same([...outcomes], ['1 of them, 5 are refused'])
  t.same(await readdir(directory), [], 'nothing is left behind')
})

test('the place of an agent that died while it took the place of a dead one is taken, too', async (t) => {
  const directory = testFolder(t)
  const [first, second] = ['999999 earlier-boot/1\n', '999998 earlier-boot/2\n']
  const successor = createHash('sha256').update(first).digest('hex').slice(0, 16)
  await writeFile(join(directory, 'agent.lock'), first)
  await writeFile(join(directory, `agent.lock.${successor}`), second)
  const lock = await lockDirectory(directory)
  t.equal(await agentOn(directory), process.pid)
  await lock.release()
  t.same(await readdir(directory), [], 'nothing is left behind')
})

test('the place of an agent is taken whose files a power cut has emptied', async (t) => {
  const directory = testFolder(t)
  const successor = createHash('sha256').update('').digest('hex').slice(0, 16)
  await writeFile(join(directory, 'agent.lock'), '')
  await writeFile(join(directory, `agent.lock.${successor}`), '')
  await (await lockDirectory(directory)).release()
  t.same(await readdir(directory), [], 'nothing is left behind')
})

test('a read-only directory does not keep an agent from running, but a second one from running beside it', {
  skip: skipWithout('root', isRoot()),
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'bramble-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', directory])
  t.teardown(async () => {
    execFileSync('umount', ['--lazy', directory])
    await rmdir(directory)
  })
  const first = await holder(t, directory)
  await writeFile(join(directory, 'filler'), Buffer.alloc(64 * 1024)).catch(() => undefined)
  await t.rejects(lockDirectory(directory), AlreadyRunning)
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  const full = await lockDirectory(directory)
  t.match(full.unmarked, { code: 'ENOSPC' })
  await full.release()
  execFileSync('mount', ['-o', 'remount,ro', directory])
  t.match((await lockDirectory(directory)).unmarked, { code: 'EROFS' })
})
