import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

test('a controller’s machine is lost', { skip: whyNoDockerd(), timeout: 300_000 }, async (t) => {
  const { folder, docker, controllerAgain, ...fleet } = await joinedFleet(t)
  let { controller } = fleet
  const { dataDir } = controller
  const agent = await fleet.startAgent()

  const started = (name: string) =>
    eventually(
      `pod ${name} runs`,
      async () => {
        const seen = await controller.tryKubectl(...['get', 'pod', name, '-o'], startedAt)
        return seen.code === 0 && /\S+ \S+/.test(seen.stdout) && seen.stdout
      },
      { withinMs: 90_000 },
    )
  const backup = async () => {
    const made = await controller.command('backup', folder, '--data-dir', dataDir)
    t.equal(made.code, 0, made.stderr)
    t.match(made.stdout, /\d+ pods.*files of the authority/)
    const name = (await readdir(folder)).find((one) => one.endsWith('.backup'))
    return join(folder, name ?? 'none')
  }

  await controller.kubectlWith(podManifest({ name: 'early', image }), 'apply', '-f', '-')
  const early = await started('early')
  const kept = await backup()
  await controller.kubectl('create', 'namespace', 'shop')
  await controller.kubectl('-n', 'default', 'create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame')
  const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'hidden', key: 'word' } } }]
  await controller.kubectlWith(podManifest({ name: 'late', image, container: { env } }), 'apply', '-f', '-')
  const late = await started('late')

  t.test('what came after the backup is learnt back, and nothing was started again', async (t) => {
    await crash(controller)
    const command = controller.command
    const refused = await command('restore', kept, '--data-dir', dataDir)
    t.match(refused, { code: 1, stderr: /already .*give --replace/ })
    const restored = await command('restore', kept, '--data-dir', dataDir, '--replace')
    t.equal(restored.code, 0, restored.stderr)
    controller = await controllerAgain()
    t.equal(await started('early'), early)
    t.equal(await started('late'), late)
    const word = await controller.kubectl('get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}')
    t.equal(Buffer.from(word, 'base64').toString(), 'sesame')
    t.equal((await controller.tryKubectl('wait', '--for=condition=Ready', 'node/pi-1', '--timeout=60s')).code, 0)
    await controller.program.stop()
  })

  t.test('from the authority’s key alone a controller learns its fleet', async (t) => {
    await rename(dataDir, `${dataDir}.lost`)
    await mkdir(join(dataDir, 'authority'), { recursive: true })
    await rename(join(`${dataDir}.lost`, 'authority', 'ca.key'), join(dataDir, 'authority', 'ca.key'))
    controller = await controllerAgain()
    t.equal(await started('early'), early)
    t.equal(await started('late'), late)
    t.equal((await controller.tryKubectl('wait', '--for=condition=Ready', 'node/pi-1', '--timeout=60s')).code, 0)
    await controller.kubectl('delete', 'pod', 'late', '--grace-period=1', '--timeout=60s')
    const left = await docker.docker.listContainers()
    t.notOk(
      left.some(({ Labels }) => Object.values(Labels).includes('late')),
      'and it is obeyed again',
    )
  })
  t.teardown(() => agent.stop())
})

const startedAt =
  'jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].state.running.startedAt}'

async function crash(controller: Controller): Promise<void> {
  controller.program.kill('SIGKILL')
  await controller.program.ended
  await rm(join(controller.dataDir, 'controller.pid'), { force: true })
}
