/** An image that attacks the machines that run it: its author chooses what Docker repeats in its answers. */
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type Dockerode from 'dockerode'
import { test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import type { Program } from '../support/program.ts'
import { busyboxLayer, startRegistry } from '../support/registry.ts'
import { eventually } from '../support/wait.ts'
import { attackedFleet, honest } from './support/attacked-fleet.ts'
import { hostileArchive, hostileImageRefused, hostileLabels } from './support/hostile-image.ts'

/** MemoryMax of systemd/bramble-agent.service. */
const allowedMiB = 384

test('an attacker who makes images', async (t) => {
  const fleet = await attackedFleet(t)
  const { controller } = fleet
  const { docker } = fleet.docker
  const apply = async (name: string, of: string, imagePullPolicy: string) => {
    const command = ['sh', '-c', 'sleep 100000']
    const spec = { nodeName: honest }
    const manifest = podManifest({ name, image: of, command, spec, container: { imagePullPolicy } })
    await controller.kubectlWith(manifest, 'apply', '-f', '-')
  }
  const ready = (name: string) => controller.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=120s')
  const refused = async (name: string) =>
    eventually(
      `pod ${name} is refused`,
      async () => {
        const { status } = JSON.parse(await controller.kubectl('get', 'pod', name, '-o', 'json'))
        const { reason, message = '' } = status.containerStatuses?.[0]?.state?.waiting ?? {}
        return hostileImageRefused.test(message) && String(reason)
      },
      // Docker itself takes a while for 60 MiB on a busy machine.
      { withinMs: 300_000 },
    )
  const [first] = fleet.agents
  if (first === undefined) throw new Error('No agent')

  await t.test('with 60 MiB of labels gets no container, and holds up no other pod', async (t) => {
    const registry = await startRegistry(t)
    const hostile = `${registry.host}/hostile:1`
    registry.add('hostile', '1', { layers: [await busyboxLayer()], labels: hostileLabels })
    await fleet.unnoticed(t, async () => {
      await apply('large', hostile, 'IfNotPresent')
      await apply('beside', image, 'IfNotPresent')
      await ready('beside')
      t.match(await refused('large'), /^(ErrImagePull|ImagePullBackOff)$/)
      await eventually('the image is removed', () => isGone(docker, hostile))
    })
    const events = await controller.kubectl('get', 'events', '--field-selector', 'involvedObject.name=large')
    t.match(events, /Failed to pull image .* its configuration is too large/)
    t.ok((await peakMiB(first)) <= allowedMiB, `${await peakMiB(first)} MiB at most`)
    await controller.kubectl('delete', 'pod', 'large', '--timeout=80s')
  })

  await t.test('whose image another program uses takes no agent from its node', async (t) => {
    const hostile = 'test/hostile:1'
    await text(await docker.loadImage(Readable.from([hostileArchive(hostile, await busyboxLayer())])))
    const { id } = await docker.createContainer({ Image: hostile, Cmd: ['true'] })
    await first.stop()
    const agent = await fleet.startAgent(honest)
    await agent.logged('Node status posted')
    await fleet.unnoticed(t, async () => {
      await apply('loaded', hostile, 'Never')
      await apply('after', image, 'IfNotPresent')
      await ready('after')
      t.equal(await refused('loaded'), 'ErrImagePull')
    })
    t.notOk(await isGone(docker, hostile), 'an image in use stays')
    t.ok((await peakMiB(agent)) <= allowedMiB, `${await peakMiB(agent)} MiB at most`)
    await controller.kubectl('delete', 'pod', 'after', 'loaded', '--timeout=80s')
    await docker.getContainer(id).remove()
  })
})

async function isGone(docker: Dockerode, name: string): Promise<boolean> {
  return await docker
    .getImage(name)
    .inspect()
    .then(
      () => false,
      ({ statusCode }) => statusCode === 404,
    )
}

/** The most memory that it had so far. */
async function peakMiB({ pid }: Program): Promise<number> {
  return Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
