/** What goes wrong with a machine is seen by kubectl within seconds, on real parts: mounts, dockerd, the kernel's log. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { type Controller, joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import { smallDisk } from './support/small-disk.ts'
import { eventually } from './support/wait.ts'

const run = promisify(execFile)
const patience = { withinMs: 90_000, everyMs: 500 }

type Condition = { readonly [Fact in 'type' | 'status' | 'reason' | 'message' | 'lastTransitionTime']: string }

async function conditionsOf(controller: Controller): Promise<ReadonlyMap<string, Condition>> {
  const node = JSON.parse(await controller.kubectl('get', 'node', 'pi-1', '-o', 'json'))
  const conditions: readonly Condition[] = node.status?.conditions ?? []
  return new Map(conditions.map((condition) => [condition.type, condition]))
}

test('a failing disk, a silent Docker and a stuck kernel are seen, and seen to be over', {
  skip: whyNoDockerd(),
}, async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'agent')
  await mkdir(dataDir)
  await run('mount', ['--bind', dataDir, dataDir])
  t.teardown(() => run('umount', ['--lazy', dataDir]))
  const [docker, controller] = await Promise.all([
    startDockerd(t),
    startController(t, { dataDir: join(folder, 'controller') }),
  ])
  await joinFleet(controller, 'pi-1', dataDir)
  const agent = await startAgent(t, { dataDir, dockerSocket: docker.socket })
  await agent.logged('Node status posted')
  await controller.nodesReady('pi-1')
  /** Waits until the condition is so; gives how many seconds after that moment it became so. */
  const becomes = async (type: string, wanted: Partial<Condition>, sinceMs: number) => {
    const { lastTransitionTime = '' } = await eventually(
      `${type} is ${JSON.stringify(wanted)}`,
      async () => {
        const condition = (await conditionsOf(controller)).get(type)
        const found: { readonly [name: string]: string } = condition ?? {}
        return Object.entries(wanted).every(([name, value]) => found[name] === value) && condition
      },
      patience,
    )
    const tookS = Math.round((Date.parse(lastTransitionTime) - sinceMs) / 1000)
    t.comment(`${type} ${wanted.reason ?? wanted.status}: ${tookS} s`)
    return tookS
  }

  const startedMs = Date.now()
  await becomes('ReadOnlyFilesystem', { status: 'False', reason: 'FilesystemsWritable' }, startedMs)
  await becomes('DockerUnhealthy', { status: 'False', reason: 'DockerAnswers' }, startedMs)

  await t.test('a data directory that became read-only, and a Docker that hangs', async (t) => {
    const sinceMs = Date.now()
    await run('mount', ['-o', 'remount,bind,ro', dataDir])
    process.kill(docker.pid ?? 0, 'SIGSTOP')
    try {
      const [, unready = 0, hangs = 0] = await Promise.all([
        becomes('ReadOnlyFilesystem', { status: 'True', reason: 'FilesystemReadOnly' }, sinceMs),
        becomes('Ready', { status: 'False' }, sinceMs),
        becomes('DockerUnhealthy', { status: 'True', reason: 'DockerHangs' }, sinceMs),
      ])
      t.ok(unready <= 15, 'not Ready within 15 s of the disk')
      t.ok(hangs <= 30, 'and Docker is missed within 30 s')
      const { message = '' } = (await conditionsOf(controller)).get('Ready') ?? {}
      t.match(message, /The filesystem of .* is read-only. Save what you can/, 'why it is not Ready')
    } finally {
      process.kill(docker.pid ?? 0, 'SIGCONT')
      await run('mount', ['-o', 'remount,bind,rw', dataDir])
    }
    const overMs = Date.now()
    await becomes('ReadOnlyFilesystem', { status: 'False', reason: 'FilesystemsWritable' }, overMs)
    await becomes('DockerUnhealthy', { status: 'False', reason: 'DockerAnswers' }, overMs)
    await becomes('Ready', { status: 'True' }, overMs)
  })

  await t.test('a Docker that was killed, and a task that hangs', async (t) => {
    const sinceMs = Date.now()
    await docker.kill()
    const hung = await hungTask(t)
    try {
      await Promise.all([
        becomes('DockerUnhealthy', { status: 'True', reason: 'DockerDown' }, sinceMs),
        hung &&
          eventually(
            'the hung task is reported',
            async () => {
              const { reason, message = '' } = (await conditionsOf(controller)).get('KernelDeadlock') ?? {}
              return reason === 'TaskHung' && message.includes(`${hung.name} (process `)
            },
            patience,
          ),
      ])
    } finally {
      await hung?.end()
    }
    await docker.start()
    await becomes('DockerUnhealthy', { status: 'False', reason: 'DockerAnswers' }, Date.now())
    const described = await eventually(
      'its events are there',
      async () => {
        const description = await controller.kubectl('describe', 'node', 'pi-1')
        return (
          /DockerDown/.test(description) &&
          /DockerAnswers/.test(description) &&
          /FilesystemReadOnly/.test(description) &&
          description
        )
      },
      patience,
    )
    t.match(described, /Warning\s+FilesystemReadOnly.*ReadOnlyFilesystem: The filesystem of/)
    t.match(described, /Normal\s+DockerAnswers.*DockerUnhealthy is over/)
  })
  t.equal(await agent.stop(), 0)
})

/** A task that waits for a disk that does not answer, and a kernel that reports it after seconds; `end` puts both right. */
async function hungTask(t: Test): Promise<{ readonly name: string; end(): Promise<void> } | undefined> {
  const settings = ['hung_task_timeout_secs', 'hung_task_warnings'].map((name) => join('/proc/sys/kernel', name))
  if (!settings.every(isWritable)) {
    t.comment('skipped: this kernel does not report hung tasks, or not when we want it to')
    return undefined
  }
  const before = settings.map((path) => readFileSync(path, 'utf8'))
  const disk = await smallDisk(t, 8)
  await run('fsfreeze', ['--freeze', disk])
  // Its process number is another one where the test runs in a namespace of processes.
  const name = `touch-${randomBytes(4).toString('hex')}`
  const program = join(await temporaryFolder(t), name)
  await symlink('/usr/bin/touch', program)
  const task = run(program, [join(disk, 'file')])
  // However many tasks hang on this host meanwhile: it has ten lines for all of them.
  writeFileSync('/proc/sys/kernel/hung_task_warnings', '-1')
  writeFileSync('/proc/sys/kernel/hung_task_timeout_secs', '3')
  return {
    name,
    async end() {
      for (const [index, path] of settings.entries()) writeFileSync(path, before[index] ?? '')
      await run('fsfreeze', ['--unfreeze', disk])
      await task
    },
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
