import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join as path } from 'node:path'
import { type Test, test } from 'tap'
import type { BootstrapToken } from '../../api/node/bootstrap-token.ts'
import type { Clock } from '../../daemon/clock.ts'
import { systemClock } from '../../daemon/clock.ts'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { openFleetDoor } from '../testing/fleet-door.ts'
import { firstBoot } from './first-boot.ts'
import { readFirstBoot } from './first-boot-file.ts'
import { readIdentity } from './identity.ts'

const token: BootstrapToken = { id: 'abcdef', secret: '0123456789abcdef', usages: ['authentication'], groups: [] }
const tokenText = 'abcdef.0123456789abcdef'
const caHash = `sha256:${'0'.repeat(64)}`
const impatient: Clock = { ...systemClock, sleep: (_ms, signal) => systemClock.sleep(5, signal) }

function aMachine(t: Test, file: string) {
  const folder = testFolder(t, { 'bramble.yaml': file })
  const stopping = new AbortController()
  const log = quietLog(t, 'The first-boot file is wrong: correct it and reboot')
  const card = path(folder, 'bramble.yaml')
  const boot = () =>
    firstBoot({
      paths: [path(folder, 'firmware/bramble.yaml'), card],
      dataDir: path(folder, 'agent'),
      hostname: 'Pi',
      hardware: { boardSerial: '10000000DEADBEEF' },
      obstacleTo: async () => undefined,
      clock: impatient,
      random: () => 1,
      signal: stopping.signal,
      log,
    })
  const status = () => readFile(path(folder, 'bramble-status.txt'), 'utf8')
  return { card, boot, log, stopping, status, identity: () => readIdentity(path(folder, 'agent')) }
}

test('a machine joins with the printed line on its card, and the card then holds no token', async (t) => {
  const door = await openFleetDoor({ folder: path(testFolder(t), 'authority'), token })
  t.teardown(() => door.close())
  const line = `join: bramble-agent join ${door.url.origin} --token ${tokenText} --ca-hash ${door.caHash}\r\n`
  const machine = aMachine(t, `\uFEFF${line}`)
  t.equal(await machine.boot(), 'joined')
  t.match(await machine.identity(), { nodeName: 'pi', apiUrl: door.url.origin })
  t.equal(existsSync(machine.card), false)
  t.match(
    await machine.status(),
    /^Bramble, 20.* UTC by the clock of this machine:\nJoined https:\/\/127\.0\.0\.1:\d+ as node pi\.\n$/,
  )
  t.notMatch(await machine.status(), token.secret)
  t.equal(await machine.boot(), 'nothing-to-do')
})

test('on a machine that was in a fleet the log asks to restart the agent', async (t) => {
  const door = await openFleetDoor({ folder: path(testFolder(t), 'authority'), token })
  t.teardown(() => door.close())
  const line = `join: bramble-agent join ${door.url.origin} --token ${tokenText} --ca-hash ${door.caHash}`
  const machine = aMachine(t, line)
  t.equal(await machine.boot(), 'joined')
  t.same(machine.log.messages('warn'), [])
  await writeFile(machine.card, `${line} --node-name attic`)
  t.equal(await machine.boot(), 'joined')
  t.match(await machine.identity(), { nodeName: 'attic' })
  t.match(machine.log.lines.at(-2), {
    message: 'The agent continues with its previous identity',
    facts: { node: 'pi', remedy: /systemctl restart bramble-agent/ },
  })
})

test('it tries until the controller is there, and logs each failure once', async (t) => {
  const machine = aMachine(
    t,
    `controller: https://127.0.0.1:1\ntoken: ${tokenText}\ncaHash: ${caHash}\nnodeName: Attic\n`,
  )
  const done = machine.boot()
  while (machine.log.messages('warn').length === 0) await systemClock.sleep(5)
  await systemClock.sleep(50)
  t.equal(machine.log.messages('warn').length, 1)
  t.match(machine.log.lines[0]?.facts['error'], { message: /nothing listens at 127\.0\.0\.1:1$/ })
  t.equal(existsSync(machine.card), true)
  t.match(
    await machine.status(),
    /\nCannot join yet: .*nothing listens at 127\.0\.0\.1:1.*\n.+\nIt is tried again until it works\.\n$/,
  )
  machine.stopping.abort()
  t.equal(await done, 'stopped')
})

test('a hostname that is taken gets the end of the serial number of the board', async (t) => {
  const door = await openFleetDoor({
    folder: path(testFolder(t), 'authority'),
    token,
    denyFirst: 'node name pi is in use by another machine',
  })
  t.teardown(() => door.close())
  const machine = aMachine(
    t,
    `join: sudo bramble-agent join ${door.url.origin} --token ${tokenText} --ca-hash ${door.caHash}`,
  )
  t.equal(await machine.boot(), 'joined')
  t.match(await machine.identity(), { nodeName: 'pi-deadbeef' })
})

test('a file that is wrong stays, and the field is named', async (t) => {
  const machine = aMachine(t, 'controller: https://c:6443\ntoken: secret\n')
  t.equal(await machine.boot(), 'bad-file')
  t.equal(await readFile(machine.card, 'utf8'), 'controller: https://c:6443\ntoken: secret\n')
  t.match(machine.log.lines[0]?.facts['error'], { message: /\n {2}token: must be a token/ })
  t.match(await machine.status(), /\n {2}token: must be a token.*\nCorrect the file and start the machine again\.\n$/)

  const problemOf = (source: string) => {
    try {
      readFirstBoot(source, 'bramble.yaml')
      return 'none'
    } catch (error) {
      return error instanceof ConfigurationError ? error.problems.join() : String(error)
    }
  }
  t.match(problemOf('join: ['), /Flow/)
  t.match(problemOf('tokn: x'), /^tokn: Unknown field/)
  t.match(problemOf('nodeName: pi'), /^controller: is missing/)
  t.match(problemOf('join: bramble-agent --token x'), /^join: must be the line/)
  t.match(
    problemOf(`join: bramble-agent join http://c --token ${tokenText} --ca-hash ${caHash}`),
    /^join: address must be/,
  )
  t.match(problemOf(`join: bramble-agent join https://c --token ${tokenText}\ntoken: x`), /^join: give either/)
  t.match(
    problemOf(`controller: https://c\ntoken: ${tokenText}\ncaHash: ${caHash}\nnodeName: a_b`),
    /^nodeName: "a_b" /,
  )
  t.equal(problemOf(`controller: https://c\ntoken: ${tokenText}\ncaHash: ${caHash}\n`), 'none')
})
