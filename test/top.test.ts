/** `bramble-controller top` on a real terminal, with a real fleet. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'
import { image } from './support/pods.ts'
import { openTestTerminal } from './support/terminal.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithout('root', isRoot()) || skipWithout('util-linux', existsSync('/usr/bin/script'))
const program = fileURLToPath(new URL('../../scripts/bramble-controller', import.meta.url))

const hostileEvent = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'hostile', namespace: 'default' },
  involvedObject: { kind: 'Pod', namespace: 'default', name: 'web' },
  reason: 'Hostile',
  message: 'before \u001b]0;owned\u0007\u001b[2J\u001b[31m\u202e after',
  type: 'Warning',
  lastTimestamp: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+/, ''),
})

test('the fleet in a terminal', { skip }, async (t) => {
  const fleet = await joinedFleet(t, { controller: { nodeConnectionLossDebounce: '1s' } })
  const [agent] = await fleet.startReady()
  const { controller } = fleet
  const command = [program, 'top', '--kubeconfig', controller.kubeconfig]
  const terminal = await openTestTerminal(t, command)

  await t.test('machines, what they use, pods that wait and events are shown', async (t) => {
    const stuck = podManifest({ name: 'stuck', image, spec: { nodeSelector: { disk: 'none' } } })
    await controller.kubectlWith(stuck, 'apply', '-f', '-')
    await terminal.shows(/^ {3}pi-1 Ready .* \d+%.* \d+%/m)
    await terminal.shows(/^! {2}default +stuck +Pending .*0\/1 nodes are available/m)
    await terminal.shows(/^! .* FailedScheduling +default\/Pod\/stuck/m)
    t.match(terminal.lines()[0], /^Bramble https:\/\/\S+ {2}1 machine.* live \d\d:\d\d:\d\d UTC$/)
    t.ok(terminal.isAlternate())
    t.notOk(await terminal.isCooked())
  })

  await t.test('the message of an event cannot control the terminal', async (t) => {
    await controller.kubectlWith(hostileEvent, 'create', '-f', '-')
    await terminal.shows(/Hostile +default\/Pod\/web +before \?\]0;owned\?\?\[2J\?\[31m\? after/)
    t.notMatch(terminal.raw(), '\u001b]')
  })

  await t.test('keys filter, go from list to list, and another size draws all lines again', async (t) => {
    terminal.press('/stuck\r')
    await terminal.shows(/> Machines \(0, filter: stuck\)/)
    terminal.press('\t')
    await terminal.shows(/> Pods that wait \(1, filter: stuck\)/)
    terminal.press('\u001b')
    await terminal.shows(/> Pods that wait \(1\)/)
    await terminal.resize(60, 12)
    await eventually('12 lines are drawn', () => terminal.lines().length === 12)
    await terminal.shows(/> Pods that wait \(1\)/)
    t.ok(terminal.lines().every((line) => line.length <= 60))
    await terminal.resize(110, 30)
    terminal.press('\u001b[Z')
    await terminal.shows(/> Machines \(1\)/)
  })

  await t.test('Ctrl-Z where no shell could continue the program draws all lines again', async (t) => {
    const entered = () => terminal.raw().split('\u001b[?1049h').length - 1
    t.equal(entered(), 1)
    terminal.press('\u001a')
    await eventually('the terminal is entered again', () => entered() === 2)
    await terminal.shows(/> Machines \(1\)/)
    t.notOk(await terminal.isCooked())
  })

  await t.test('a machine that is killed is marked, with the reason', async () => {
    agent.kill('SIGKILL')
    await terminal.shows(/^!! pi-1 No contact .*(connection to the node was lost|stopped reporting)/im)
    await terminal.shows(/1 machine, 1 not ready/)
  })

  await t.test('without the controller the cards stay, and it connects again', async () => {
    await controller.program.stop()
    await terminal.shows(/^ NOT CONNECTED, trying again: [\s\S]*^!! pi-1 No contact/m)
    await fleet.controllerAgain()
    await terminal.shows(/ live \d\d:\d\d:\d\d UTC/)
  })

  await t.test('q restores the terminal', async (t) => {
    terminal.press('q')
    t.equal(await terminal.ended(), 0)
    t.notOk(terminal.isAlternate())
    t.ok(terminal.isCursorShown())
    t.ok(await terminal.isCooked())
  })

  await t.test('so do Ctrl-C, a signal and a refusal, which is printed', async (t) => {
    const plain = { ...process.env, NO_COLOR: '1' }
    const interrupted = await openTestTerminal(t, command, plain)
    await interrupted.shows(/pi-1 No contact/)
    t.notMatch(interrupted.raw(), '\u001b[1;31m', 'NO_COLOR')
    t.match(terminal.raw(), '\u001b[1;31m')
    interrupted.press('\u0003')
    t.equal(await interrupted.ended(), 0)
    t.notOk(interrupted.isAlternate())
    t.ok(await interrupted.isCooked())

    const killed = await openTestTerminal(t, command)
    await killed.shows(/pi-1 No contact/)
    await killed.kill('SIGTERM')
    t.equal(await killed.ended(), 0)
    t.notOk(killed.isAlternate())
    t.ok(await killed.isCooked())

    const refused = await openTestTerminal(t, [...command, '--server', 'https://127.0.0.1:1'])
    t.equal(await refused.ended(), 1)
    await refused.shows(/Cannot read the fleet from https:\/\/127\.0\.0\.1:1.*ECONNREFUSED/)
    t.notOk(refused.isAlternate())
    t.ok(await refused.isCooked())
  })

  await t.test('in a pipe it prints lines: once, or each that changes', async (t) => {
    const once = await controller.command('top', '--kubeconfig', controller.kubeconfig)
    t.match(once, { code: 0, stderr: '' })
    t.match(once.stdout, /^machine\tbad\tpi-1\tNo contact\t.*\npod\twarn\tdefault\/stuck\tPending\t[\s\S]*^event\t/m)
    t.notMatch(once.stdout, '\u001b')
    const watching = spawn(program, ['top', '--watch', '--kubeconfig', controller.kubeconfig])
    t.teardown(() => watching.kill('SIGKILL'))
    const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]()
    const next = async (pattern: RegExp) => {
      for (;;) {
        const { value, done } = await lines.next()
        if (done || pattern.test(value)) return value
      }
    }
    t.ok(await next(/^machine\tbad\tpi-1/))
    await controller.kubectl('cordon', 'pi-1')
    t.ok(await next(/^machine\tbad\tpi-1\tNo contact, cordoned\t/))
    watching.kill('SIGTERM')
  })

  await t.test('the token of a service account is enough, and shows what the account may list', async (t) => {
    await controller.kubectl('create', 'serviceaccount', 'top', '-n', 'default')
    const token = (await controller.kubectl('create', 'token', 'top', '-n', 'default')).trim()
    const path = join(fleet.folder, 'top.kubeconfig')
    const flat = await controller.kubectl('config', 'view', '--raw', '--minify', '-o', 'json')
    const { users, ...config } = JSON.parse(flat)
    await writeFile(path, JSON.stringify({ ...config, users: [{ name: users[0].name, user: { token } }] }))
    const lines = async () => (await controller.command('top', '--kubeconfig', path)).stdout
    t.equal(await lines(), '', 'an account without rights sees nothing')
    const role = ['--clusterrole=bramble:kiosk', '--serviceaccount=default:top']
    await controller.kubectl('create', 'clusterrolebinding', 'top', ...role)
    t.match(await lines(), /^machine\tbad\tpi-1\t/)
    await writeFile(path, JSON.stringify({ ...config, users: [{ name: users[0].name, user: { token: 'none' } }] }))
    const refused = await controller.command('top', '--kubeconfig', path)
    t.match(refused, { code: 1, stdout: '', stderr: /Cannot read the fleet from .*status 401/ })
  })
})
