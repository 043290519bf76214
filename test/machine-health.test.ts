/** What goes wrong with a machine is seen by kubectl within seconds, on real parts: mounts, dockerd, the kernel's log. */
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { accessSync, constants, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { type Controller, joinFleet, startAgent, startController, temporaryFolder } from './support/fleet.ts'
import { eventually } from './support/wait.ts'

const run = promisify(execFile)
const patience = { withinMs: 90_000, everyMs: 500 }

type Condition = { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }

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
  await agent.said('Node status posted')
  await controller.nodesReady('pi-1')
  /** Waits until the condition is so; gives how long that took. */
  const becomes = async (type: string, wanted: Partial<Condition>, sinceMs: number) => {
    await eventually(
      `${type} is ${JSON.stringify(wanted)}`,
      async () => {
        const found: { readonly [name: string]: string } | undefined = (await conditionsOf(controller)).get(type)
        return found !== undefined && Object.entries(wanted).every(([name, value]) => found[name] === value)
      },
      patience,
    )
    t.comment(`${type} ${wanted.reason ?? wanted.status}: ${Math.round((performance.now() - sinceMs) / 100) / 10} s`)
  }

  const startedMs = performance.now()
  await becomes('ReadOnlyFilesystem', { status: 'False', reason: 'FilesystemsWritable' }, startedMs)
  await becomes('DockerUnhealthy', { status: 'False', reason: 'DockerAnswers' }, startedMs)

  await t.test('a data directory that became read-only, and a Docker that hangs', async (t) => {
    const sinceMs = performance.now()
    await run('mount', ['-o', 'remount,bind,ro', dataDir])
    process.kill(docker.pid ?? 0, 'SIGSTOP')
    try {
      await Promise.all([
        becomes('ReadOnlyFilesystem', { status: 'True', reason: 'FilesystemReadOnly' }, sinceMs),
        becomes('Ready', { status: 'False' }, sinceMs),
        becomes('DockerUnhealthy', { status: 'True', reason: 'DockerHangs' }, sinceMs),
      ])
      const { message = '' } = (await conditionsOf(controller)).get('Ready') ?? {}
      t.match(message, /the filesystem of .* is read-only: save what you can/, 'why it is not Ready')
    } finally {
      process.kill(docker.pid ?? 0, 'SIGCONT')
      await run('mount', ['-o', 'remount,bind,rw', dataDir])
    }
    const overMs = performance.now()
    await becomes('ReadOnlyFilesystem', { status: 'False', reason: 'FilesystemsWritable' }, overMs)
    await becomes('DockerUnhealthy', { status: 'False', reason: 'DockerAnswers' }, overMs)
    await becomes('Ready', { status: 'True' }, overMs)
  })

  await t.test('a Docker that was killed, and a task that hangs', async (t) => {
    const sinceMs = performance.now()
    await docker.kill()
    const writes = mayWriteToKernelLog()
    // No process has such a number, so nobody can be found waiting.
    if (writes)
      writeFileSync(
        '/dev/kmsg',
        `<3>INFO: task bramble-test:${randomInt(5e6, 9e6)} blocked for more than 120 seconds.\n`,
      )
    else t.comment('skipped: /dev/kmsg cannot be written to here')
    await Promise.all([
      becomes('DockerUnhealthy', { status: 'True', reason: 'DockerDown' }, sinceMs),
      writes && becomes('KernelDeadlock', { status: 'True', reason: 'TaskHung' }, sinceMs),
    ])
    await docker.start()
    await becomes('DockerUnhealthy', { status: 'False', reason: 'DockerAnswers' }, performance.now())
    const described = await eventually(
      'its events are there',
      async () => {
        const said = await controller.kubectl('describe', 'node', 'pi-1')
        return /DockerDown/.test(said) && /DockerAnswers/.test(said) && /FilesystemReadOnly/.test(said) && said
      },
      patience,
    )
    t.match(described, /Warning\s+FilesystemReadOnly.*ReadOnlyFilesystem: the filesystem of/)
    t.match(described, /Normal\s+DockerAnswers.*DockerUnhealthy is over/)
  })
  t.equal(await agent.stop(), 0)
})

function mayWriteToKernelLog(): boolean {
  try {
    accessSync('/dev/kmsg', constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}
