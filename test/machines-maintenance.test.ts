/**
 * A machine whose security updates are installed: it is drained within its budgets, upgraded outside of the agent, restarted, checked and
 * given back; an upgrade that fails stops the maintenance until an operator resumes it.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { usualMaintenance } from '../broker-controller/controllers/maintenance/maintenance-rules.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { bootMachine, type Machine } from './support/machine.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { machineNetwork } from './support/machine-network.ts'
import { hubOn, installController, installOnDisk, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const image = 'test/busybox:1'
const tool = 'bramble-test-tool'
const minutes = 60_000

test('security updates of a machine', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const [home, pi] = await Promise.all([
    bootMachine(t, { name: 'hub', network, prepare: (disk) => installController(disk, packages.controller) }),
    bootMachine(t, { name: 'pi-01', network, prepare: (disk) => installOnDisk(disk, packages.agent) }),
  ])
  await pi.importImage(image)
  const hub = await hubOn(t, home)
  await pi.write(
    '/etc/bramble/agent.yaml',
    JSON.stringify({
      ...{ apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration' },
      ...{ osUpgrades: true, enableRemoteReboot: true },
    }),
  )
  await pi.run(`${await hub.joinLine()} --no-run`)
  await eventually('it is Ready', () => isNodeReady(hub, 'pi-01'))
  const archive = securityArchive(testFolder(t), pi)
  await archive.publish('1.0', '')
  await pi.run(`apt-get install --yes ${tool}`)

  const node = (path: string) => hub.kubectl('get', 'node', 'pi-01', '-o', `jsonpath=${path}`)
  const report = async () => JSON.parse((await node('{.metadata.annotations.bramble\\.dev/os-updates}')) || '{}')
  const phase = () => node('{.metadata.annotations.bramble\\.dev/maintenance}')
  const isCordoned = async () => (await node('{.spec.unschedulable}')) === 'true'
  const status = () => home.run('bramble-controller maintenance status')
  const counted = async () => {
    await pi.run('systemctl start bramble-os-updates', { withinMs: 2 * minutes })
    await eventually('the agent reports it', async () => (await report()).security === 1, { withinMs: 2 * minutes })
  }

  await t.test('pending security updates are counted and reported, and nothing is installed', async (t) => {
    // It is outside of the agent, and shows that by restarting it.
    const restarts = 'systemctl restart bramble-agent; sleep 2; touch /run/reboot-required'
    await archive.publish('2.0', `${restarts}; echo ${tool} >/run/reboot-required.pkgs`)
    await counted()
    t.same((await report()).packages, [tool])
    t.match(await home.run('bramble-controller maintenance'), /No maintenance was started/)
    t.equal(await installedVersion(pi), '1.0')
  })

  await t.test('a budget holds the drain, and after it the machine is upgraded and restarted', async (t) => {
    await hub.kubectlWith(JSON.stringify(deployment), 'apply', '-f', '-')
    await hub.kubectl('create', 'pdb', 'web', '--selector=app=web', '--min-available=1')
    await hub.kubectl('wait', '--for=condition=Available', 'deployment/web', '--timeout=60s')
    await home.run('bramble-controller maintenance start')
    const rules = JSON.stringify({ ...usualMaintenance, settleSeconds: 5, againSeconds: 0 })
    const patch = JSON.stringify({ data: { rules } })
    await hub.kubectl('patch', 'configmap', 'bramble-maintenance', '-n', 'kube-system', '--type=merge', '-p', patch)
    await eventually('the budget holds it', async () => /waits for default\/web-/.test(await status()))
    t.ok(await isCordoned())
    t.match(await node('{.metadata.annotations.bramble\\.dev/cordoned-by}'), 'maintenance')
    const { boots } = pi
    await hub.kubectl('delete', 'pdb', 'web')
    await pi.booted(boots + 1, 4 * minutes)
    await eventually('it is done', async () => /"phase":"Done"/.test(await phase()), { withinMs: 4 * minutes })
    t.equal(await installedVersion(pi), '2.0')
    t.notOk(await isCordoned())
    t.equal(await node('{.status.conditions[?(@.type=="RebootRequired")].status}'), 'False')
    t.match(await pi.journal('bramble-os-upgrade'), /Setting up bramble-test-tool \(2\.0\)/)
    await hub.kubectl('wait', '--for=condition=Available', 'deployment/web', '--timeout=90s')
    const events = await hub.kubectl('get', 'events', '--field-selector=involvedObject.name=pi-01')
    for (const reason of ['Draining', 'Upgrading', 'Rebooting', 'Checking', 'Done'])
      t.match(events, new RegExp(`Maintenance${reason}`))
  })

  await t.test('a machine that a person has cordoned is left alone', async (t) => {
    await hub.kubectl('cordon', 'pi-01')
    await archive.publish('3.0', 'exit 1')
    await counted()
    await eventually('the status shows why', async () => /pi-01 +it is cordoned by somebody/.test(await status()))
    t.equal(await installedVersion(pi), '2.0')
    await hub.kubectl('uncordon', 'pi-01')
  })

  await t.test('an upgrade that fails pauses the maintenance, and a resume gives the machine back', async (t) => {
    await eventually('it fails', async () => /"phase":"Failed"/.test(await phase()), { withinMs: 4 * minutes })
    await eventually('it pauses', async () => /Paused\. The maintenance of pi-01 failed/.test(await status()))
    t.match(await hub.kubectl('get', 'events', '-n', 'kube-system'), /MaintenancePaused/)
    t.ok(await isCordoned())
    await archive.publish('3.1', '')
    await home.run('bramble-controller maintenance resume')
    await eventually('the next one is done', async () => (await installedVersion(pi)) === '3.1', {
      withinMs: 4 * minutes,
    })
    await eventually('it is given back', async () => !(await isCordoned()), { withinMs: 2 * minutes })
  })
})

const deployment = {
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
  spec: {
    ...{ replicas: 1, selector: { matchLabels: { app: 'web' } } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image, imagePullPolicy: 'Never', command: ['sleep', '100000'] }],
      },
    },
  },
}

async function installedVersion(machine: Machine): Promise<string> {
  return (await machine.run(`dpkg-query --show --showformat='\${Version}' ${tool}`)).trim()
}

/** A security archive of Debian on the machine, with one package. Its postinst is `script`. */
function securityArchive(folder: string, machine: Machine) {
  const place = '/var/local/security'
  return {
    async publish(version: string, script: string) {
      const [root, file] = [join(folder, version), join(folder, `${tool}_${version}_all.deb`)]
      await mkdir(join(root, 'DEBIAN'), { recursive: true })
      const fields = { Package: tool, Version: version, Architecture: 'all', Maintainer: 'Test <root@localhost>' }
      const control = Object.entries({ ...fields, Description: 'of a test' }).map(
        ([name, value]) => `${name}: ${value}\n`,
      )
      await writeFile(join(root, 'DEBIAN/control'), control.join(''))
      await writeFile(join(root, 'DEBIAN/postinst'), `#!/bin/sh\n${script || ':'}\n`, { mode: 0o755 })
      await commandOrThrow('dpkg-deb', ['--root-owner-group', '--build', root, file])
      await machine.run(`mkdir -p ${place}; rm -f ${place}/*`)
      await machine.copyIn(file, `${place}/${tool}_${version}_all.deb`)
      await machine.run(index(place))
      await machine.run('rm --force /etc/apt/sources.list.d/*')
      await machine.write('/etc/apt/sources.list', `deb [trusted=yes] file:${place} ./\n`)
      await machine.run('apt-get update')
    },
  }
}

function index(place: string): string {
  const sum = (file: string) => `$(sha256sum <${file} | cut -d ' ' -f 1)`
  return [
    `cd ${place}`,
    `for file in *.deb; do dpkg-deb --field "$file"`,
    `printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' "$file" "$(stat -c %s "$file")" "${sum('"$file"')}"; done >Packages`,
    `printf 'Label: Debian-Security\\nSuite: stable-security\\nVersion: 12\\nDate: %s\\nSHA256:\\n %s %s Packages\\n' \
      "$(date -Ru)" "${sum('Packages')}" "$(stat -c %s Packages)" >Release`,
  ].join('\n')
}
