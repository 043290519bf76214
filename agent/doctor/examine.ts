/** Runs every check at once, each with a deadline: sources → findings. */
import type { HealthConditionType } from '../../api/node.ts'
import { withinOr } from '../../daemon/deadline.ts'
import { isDenied } from '../../daemon/errors.ts'
import { storyOf } from '../../daemon/log.ts'
import { diskShortages } from '../eviction/disk-shortages.ts'
import { timeServices } from '../health/clock.ts'
import { firewallProblem } from '../network/peers/firewall-backend.ts'
import { homeNetworkOverlaps } from '../network/peers/home-networks.ts'
import { agentFilesFindings, configurationFinding } from './agent-files.ts'
import { aptSettings } from './apt-settings.ts'
import { bootLoopFinding } from './boot-loop.ts'
import { marksFindings } from './clones.ts'
import { controllerFindings } from './controller.ts'
import { dockerFinding, dockerSettings } from './docker.ts'
import { firewallFinding } from './docker-firewall.ts'
import { type DoctorFinding, unknown } from './doctor-finding.ts'
import { healthLooks } from './health.ts'
import { identityFindings } from './identity.ts'
import { imageFindings } from './images.ts'
import { memoryCgroupFinding } from './kernel.ts'
import { networkFindings, networkPrograms, savedNetworkMessage } from './network.ts'
import { poolFindings } from './pools.ts'
import { agentPort, askedPort, mdnsPort } from './ports.ts'
import { agentUnit, automaticRestart, shutdownDelay } from './shutdown.ts'
import { type DoctorSources, type MachineFiles, notSaved } from './sources.ts'
import { evictionFinding, journalFinding, spaceFindings } from './storage.ts'
import { assignmentsOf, inOrder, settingFolders } from './systemd-settings.ts'
import { clockFinding } from './time.ts'
import { wireguardFindings } from './wireguard.ts'

export type DoctorOptions = {
  readonly healthzPort: number | undefined
  /** Additional ports to check. */
  readonly ports: readonly number[]
}

type Look = { readonly about: string; readonly look: () => Promise<readonly DoctorFinding[]> }

/** Each call below has its own deadline, so all checks take less than five seconds. */
const usualLookMs = 4_000

export async function examine(
  sources: DoctorSources,
  options: DoctorOptions,
  lookMs = usualLookMs,
): Promise<readonly DoctorFinding[]> {
  const looks = [
    ...conditionLooks(sources),
    ...machineLooks(sources),
    networkLook(sources),
    wireguardLook(sources),
    poolsLook(sources),
    ...agentLooks(sources, options),
  ]
  return (await Promise.all(looks.map((one) => inTime(one, lookMs)))).flat()
}

async function inTime({ about, look }: Look, lookMs: number): Promise<readonly DoctorFinding[]> {
  try {
    return await withinOr(lookMs, [unknown(about, `No answer within ${lookMs / 1000} s`)], look())
  } catch (error) {
    return [unknown(about, storyOf(error), isDenied(error) ? 'Run it with sudo' : undefined)]
  }
}

/** The conditions of the node. */
function conditionLooks(sources: DoctorSources): readonly Look[] {
  return healthLooks(sources.machine.health).map(({ check: { name, type }, look }) => ({
    about: name,
    look: async () => [(await refinements[type]?.(look, sources)) ?? (await look())],
  }))
}

type Refinement = (look: () => Promise<DoctorFinding>, sources: DoctorSources) => Promise<DoctorFinding>

/** Additions to a condition for a person at the machine: a fix, or a cause that is visible only here. */
const refinements: { readonly [Type in HealthConditionType]?: Refinement } = {
  MemoryCgroupDisabled: async (look, { machine }) => {
    const path = (await machine.health()).memoryCgroup()?.file
    const file = path?.endsWith('cmdline.txt') ? await machine.commandLineFile(path) : undefined
    return memoryCgroupFinding(await look(), file)
  },
  DockerUnhealthy: async (look, { live, agent }) => {
    const found = await look()
    return live === undefined ? found : dockerFinding(found, agent.dockerSocket, await live.docker())
  },
  ClockUnsynchronized: async (look, { machine, live, nowMs }) => {
    const [service, synchronized] = await Promise.all([timeService(machine.files), machine.timeSynchronized()])
    if (live === undefined && service === undefined) return unknown('clock', notSaved)
    return clockFinding(await look(), { nowMs: nowMs(), service, synchronized })
  },
}

function machineLooks({ machine, live, agent, configuration }: DoctorSources): readonly Look[] {
  const { files } = machine
  return [
    {
      about: 'disk-space',
      look: async () => {
        if (live === undefined) return [unknown('disk-space', notSaved)]
        const engine = await live.docker()
        const images = typeof engine === 'string' ? [] : [engine.rootDirectory]
        return spaceFindings(await live.space(['/', agent.dataPath, ...images, '/boot/firmware', '/boot']))
      },
    },
    {
      about: 'eviction',
      look: async () => {
        if (live === undefined) return []
        const [engine, { eviction }] = await Promise.all([live.docker(), configuration()])
        const [dataDirectory, imageDirectory] = [
          agent.dataPath,
          typeof engine === 'string' ? undefined : engine.rootDirectory,
        ]
        const observed = await live.diskSignals(dataDirectory, imageDirectory)
        const folders = { dataDirectory, imageDirectory }
        return [evictionFinding(diskShortages({ thresholds: eviction, observed, ...folders }))]
      },
    },
    {
      about: 'journal',
      look: async () => [
        journalFinding({
          hasJournal:
            (await files.has('/usr/lib/systemd/systemd-journald')) || (await files.has('/etc/systemd/journald.conf')),
          assignments: assignmentsOf(await settingFiles(files, 'journald.conf'), 'Journal', 'Storage'),
          hasFolder: await files.has('/var/log/journal'),
          card: await machine.cardOf('/var/log'),
        }),
      ],
    },
    {
      about: 'shutdown-delay',
      look: async () => [
        shutdownDelay({
          hasLogind:
            (await files.has('/usr/lib/systemd/systemd-logind')) || (await files.has('/etc/systemd/logind.conf')),
          assignments: assignmentsOf(await settingFiles(files, 'logind.conf'), 'Login', 'InhibitDelayMaxSec'),
          grantedSeconds: await live?.logindDelaySeconds(),
          wantedSeconds: (await configuration()).shutdownSeconds,
        }),
      ],
    },
    {
      about: 'automatic-restart',
      look: async () => {
        if (!(await files.has('/etc/apt'))) return [automaticRestart(undefined)]
        const folder = '/etc/apt/apt.conf.d'
        const names = (await files.names(folder)).filter((name) => /^[\w-]+$|^[\w.-]+\.conf$/.test(name))
        const paths = [...names.map((name) => `${folder}/${name}`), '/etc/apt/apt.conf']
        return [automaticRestart(aptSettings(await textsOf(files, paths)))]
      },
    },
    {
      about: 'docker-settings',
      look: async () => {
        const answer = await live?.docker()
        if (answer === undefined || typeof answer === 'string') return []
        return dockerSettings(answer, await files.has('/run/systemd/system'))
      },
    },
    firewallLook({ live, files }),
    imagesLook(live),
  ]
}

/** Docker's rules of nftables are another matter: `docker-rules` reports such a Docker. */
function firewallLook({ live, files }: Pick<DoctorSources, 'live'> & { readonly files: MachineFiles }): Look {
  return {
    about: 'docker-firewall',
    async look() {
      const engine = await live?.docker()
      if (live === undefined || engine === undefined || typeof engine === 'string') return []
      if (firewallProblem(engine.firewallBackend) !== undefined) return []
      const [rules, settings] = await Promise.all([live.firewallRules(), files.text('/etc/docker/daemon.json')])
      return [
        firewallFinding({
          networks: engine.networks,
          nat: rules?.nat,
          filter: rules?.filter,
          isSwitchedOff: /"iptables"\s*:\s*false/.test(settings ?? ''),
          liveRestore: engine.liveRestore,
        }),
      ]
    },
  }
}

/** Only overlay2 keeps what the files of an image were. */
function imagesLook(live: DoctorSources['live']): Look {
  return {
    about: 'docker-images',
    async look() {
      const engine = await live?.docker()
      if (live === undefined || engine === undefined || typeof engine === 'string') return []
      return engine.storageDriver === 'overlay2' ? imageFindings(await live.images(engine.rootDirectory)) : []
    },
  }
}

function poolsLook({ machine: { files }, live, configuration }: DoctorSources): Look {
  return {
    about: 'pools',
    look: async () => (live === undefined ? [] : await poolFindings((await configuration()).pools, files)),
  }
}

function networkLook({ machine, live, agent }: DoctorSources): Look {
  const { files } = machine
  return {
    about: 'network',
    async look() {
      const [message, forwarding, bridgeFilter] = await Promise.all([
        files.text(`${agent.dataPath}/network/network.json`),
        files.text('/proc/sys/net/ipv4/ip_forward'),
        files.text('/proc/sys/net/bridge/bridge-nf-call-iptables'),
      ])
      const saved = savedNetworkMessage(message)
      const ipv6 = saved?.ipv6 && (await files.text('/proc/sys/net/ipv6/conf/all/forwarding'))
      const folders = ['/usr/sbin', '/sbin', '/usr/bin', '/bin']
      const installed = await Promise.all(
        networkPrograms.map(async (program) =>
          (await Promise.all(folders.map((folder) => files.has(`${folder}/${program}`)))).includes(true),
        ),
      )
      const engine = await live?.docker()
      return networkFindings({
        isOn: message !== undefined,
        forwarding,
        ...(ipv6 !== undefined && { ipv6Forwarding: ipv6 }),
        bridgeFilter,
        missing: networkPrograms.filter((_, index) => !installed[index]),
        arpIgnore: await arpIgnoreOf(files),
        hasDockerChain: await live?.hasDockerChain(),
        overlaps: saved === undefined ? [] : homeNetworkOverlaps(saved, await machine.routes()),
        firewallBackend: typeof engine === 'string' ? undefined : engine?.firewallBackend,
      })
    },
  }
}

function wireguardLook({ machine: { files }, live, agent, nowMs }: DoctorSources): Look {
  return {
    about: 'wireguard',
    async look() {
      const message = savedNetworkMessage(await files.text(`${agent.dataPath}/network/network.json`))
      if (message?.wireguard === undefined) return []
      const identity = await agent.identity().catch(() => undefined)
      const places = ['/usr/bin/wg', '/bin/wg', '/usr/local/bin/wg']
      return wireguardFindings({
        message,
        nodeName: identity?.nodeName,
        hasProgram: (await Promise.all(places.map(files.has))).includes(true),
        hasKernel: await hasWireguard(files),
        state: await live?.wireguard().catch(() => undefined),
        nowSeconds: nowMs() / 1000,
      })
    },
  }
}

/** Its interface is there, or the kernel has a module for it: loaded, built in, or on disk. */
async function hasWireguard(files: MachineFiles): Promise<boolean | undefined> {
  if (/^ *bramble-wg:/m.test((await files.text('/proc/net/dev')) ?? '')) return true
  if (await files.has('/sys/module/wireguard')) return true
  const release = (await files.text('/proc/sys/kernel/osrelease'))?.trim()
  const lists = ['modules.dep', 'modules.builtin'].map((name) => files.text(`/lib/modules/${release}/${name}`))
  const texts = (await Promise.all(lists)).filter((text) => text !== undefined)
  return texts.length === 0 ? undefined : texts.some((text) => /\/wireguard\.ko/.test(text))
}

/** arp_ignore of each link that leads out of the machine. */
async function arpIgnoreOf(files: DoctorSources['machine']['files']): Promise<ReadonlyMap<string, string>> {
  const folder = '/proc/sys/net/ipv4/conf'
  const links = (await files.names(folder)).filter((name) => !/^(default$|lo$|docker|veth|br-|bramble)/.test(name))
  const read = async (name: string) => [name, (await files.text(`${folder}/${name}/arp_ignore`)) ?? '0'] as const
  return new Map(await Promise.all(links.map(read)))
}

function agentLooks(sources: DoctorSources, { healthzPort, ports }: DoctorOptions): readonly Look[] {
  const { machine, live, agent, configuration, nowMs } = sources
  const { files } = machine
  return [
    {
      about: 'hostname',
      look: async () => {
        const [hostname, machineID] = await Promise.all([machine.hostname(), files.text('/etc/machine-id')])
        if (live === undefined && machineID === undefined && hostname === undefined)
          return [unknown('hostname', notSaved)]
        const identity = await agent.identity().catch(() => undefined)
        return marksFindings({ hostname, machineID, nodeName: identity?.nodeName })
      },
    },
    {
      about: 'data-directory',
      look: async () => {
        const [dataDirectory, identity, isWritable] = await Promise.all([
          agent.dataDirectory(),
          agent.identityFile(),
          agent.isWritable(),
        ])
        return agentFilesFindings({ dataDirectory, identity, isWritable, dataPath: agent.dataPath })
      },
    },
    {
      about: 'boot-loop',
      look: async () => [bootLoopFinding(await agent.heldPods(), machine.uptimeMs())],
    },
    {
      about: 'configuration',
      look: async () => {
        const { path, trouble } = await configuration()
        return [configurationFinding(path, trouble)]
      },
    },
    {
      about: 'identity',
      look: async () => {
        const identity = await agent.identity()
        if (live === undefined && identity === undefined) return [unknown('identity', notSaved)]
        return identityFindings(identity, nowMs())
      },
    },
    {
      about: 'controller',
      look: async () => {
        const identity = await agent.identity().catch(() => undefined)
        if (identity === undefined || live === undefined) return []
        return controllerFindings(await live.controller(identity, await machine.hardware()))
      },
    },
    {
      about: 'agent-service',
      look: async () => {
        if (live === undefined) return []
        const identity = await agent.identity().catch(() => undefined)
        return agentUnit(await live.unit('bramble-agent.service'), identity !== undefined, await live.agentPid())
      },
    },
    {
      about: 'mdns-port',
      look: async () => {
        if (live === undefined || !(await configuration()).hasMulticastDNS) return []
        return [mdnsPort(await live.mdnsPortProblem())]
      },
    },
    {
      about: 'healthz-port',
      look: async () => {
        const port = healthzPort ?? (await configuration()).healthzPort
        const [listeners, answer, agentPid] = await Promise.all([
          machine.listeners([port, ...ports]),
          live?.agentHealth(port),
          live?.agentPid(),
        ])
        const asked = ports.map((one) => askedPort(one, listeners))
        return live === undefined ? asked : [agentPort({ port, listeners, agentPid, answer }), ...asked]
      },
    },
  ]
}

async function timeService(files: MachineFiles): Promise<string | undefined> {
  const known = [{ name: 'systemd-timesyncd', mark: 'run/systemd/timesync' }, ...timeServices]
  for (const { name, mark } of known) if (await files.has(`/${mark}`)) return name
  return undefined
}

/** `logind.conf` and its drop-ins, in the order systemd reads them. */
async function settingFiles(files: MachineFiles, name: string) {
  const here = async (folder: string) => {
    const names = await files.names(`${folder}/${name}.d`)
    return names.filter((one) => one.endsWith('.conf')).map((one) => `${folder}/${name}.d/${one}`)
  }
  const mains: string[] = []
  for (const folder of settingFolders) if (await files.has(`${folder}/${name}`)) mains.push(`${folder}/${name}`)
  const dropIns = (await Promise.all(settingFolders.map(here))).flat()
  return textsOf(files, inOrder(mains, dropIns))
}

async function textsOf(files: MachineFiles, paths: readonly string[]) {
  const texts = await Promise.all(paths.map(async (path) => ({ path, content: await files.text(path) })))
  return texts.flatMap(({ path, content }) => (content === undefined ? [] : [{ path, content }]))
}
