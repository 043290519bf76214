import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { beginRollover, changeOver, rolloverIn } from '../../certs/rollover.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { adminSocket, adminSocketPath } from '../admin-socket.ts'
import { certificatesCommand } from './certificates-command.ts'

const nowMs = Date.UTC(2026, 5, 1)
const notLoaded = /No running controller loaded this change: it takes effect at the next start/

test('a step of a rollover that was interrupted before the reload is loaded when it is run again', async (t) => {
  const { folder, run, reloads, openSocket } = await aFleet(t)
  await beginRollover(folder, nowMs)
  await changeOver(folder)
  const { hash } = await rolloverIn(folder)
  t.match(await run('change-over'), { code: 0, out: notLoaded })
  await openSocket()
  t.same(await run('change-over'), { code: 0, out: `The authority is already ${hash}.\n`, error: '' })
  t.equal(reloads(), 1)
})

test('that only one authority is trusted reaches the controller also when nothing is left to do', async (t) => {
  const { folder, run, reloads, openSocket } = await aFleet(t)
  await openSocket()
  const { hash } = await rolloverIn(folder)
  t.same(await run('finish'), { code: 0, out: `Only ${hash} is trusted.\n`, error: '' })
  t.equal(reloads(), 1)
})

test('a change that no controller loaded is reported', async (t) => {
  const { run, openSocket } = await aFleet(t)
  t.match(await run('begin'), { code: 0, out: notLoaded })
  await openSocket()
  const { out } = await run('begin')
  t.match(out, /copy .*kubeconfig again before that\.\n$/)
})

async function aFleet(t: Test) {
  const dataDir = await mkdtemp(join(tmpdir(), 'certificates-'))
  t.teardown(() => rm(dataDir, { recursive: true }))
  const folder = join(dataDir, 'authority')
  await openAuthority(folder, nowMs)
  let reloads = 0
  return {
    folder,
    reloads: () => reloads,
    async openSocket() {
      const reload = async () => void reloads++
      const backup = () => Promise.reject(new Error('not asked for'))
      const socket = adminSocket({ path: adminSocketPath(dataDir), backup, reload, log: quietLog(t) })
      await socket.listen()
      const stop = new AbortController()
      const running = socket.run(stop.signal)
      t.teardown(async () => {
        stop.abort()
        await running
      })
    },
    async run(step: string) {
      let [out, error] = ['', '']
      const code = await certificatesCommand(['rollover', step, '--data-dir', dataDir], {
        stdout: (text) => {
          out += text
        },
        stderr: (text) => {
          error += text
        },
        signal: new AbortController().signal,
        nowMs,
      })
      return { code, out, error }
    },
  }
}
