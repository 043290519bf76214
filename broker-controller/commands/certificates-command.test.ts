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
const notTaken = /No controller took this over: it does when it is started/

test('a step of a rollover that was broken off before the controller heard of it is taken over when it is run again', async (t) => {
  const { folder, run, reloads, openDoor } = await aFleet(t)
  await beginRollover(folder, nowMs)
  await changeOver(folder)
  const { hash } = await rolloverIn(folder)
  t.match(await run('change-over'), { code: 0, out: notTaken })
  await openDoor()
  t.same(await run('change-over'), { code: 0, out: `It has gone over to ${hash} already.\n`, error: '' })
  t.equal(reloads(), 1)
})

test('that only one authority is trusted reaches the controller also when nothing is left to do', async (t) => {
  const { folder, run, reloads, openDoor } = await aFleet(t)
  await openDoor()
  const { hash } = await rolloverIn(folder)
  t.same(await run('finish'), { code: 0, out: `Only ${hash} is trusted.\n`, error: '' })
  t.equal(reloads(), 1)
})

test('what no controller has taken over is said', async (t) => {
  const { run, openDoor } = await aFleet(t)
  t.match(await run('begin'), { code: 0, out: notTaken })
  await openDoor()
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
    async openDoor() {
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
