/** Configuration and identity → adapters → managers, running until told to stop. */
import { hostname as machineName, machine as unameMachine } from 'node:os'
import { join } from 'node:path'
import { shutdownProblem } from '../api/node/node-shutdown.ts'
import { systemClock } from '../daemon/clock.ts'
import type { Log } from '../daemon/log.ts'
import { nodeVersion, version } from '../daemon/process/version.ts'
import { runLoops } from '../daemon/run.ts'
import { loopWatch } from '../daemon/watchdog/loop-watch.ts'
import { notifierLoop, type SystemdNotifier } from '../daemon/watchdog/systemd-notifier.ts'
import { bootFile } from './adapters/disk/boot-file.ts'
import { checkpointPath, fileCheckpoint } from './adapters/disk/checkpoint.ts'
import { manifestFolder } from './adapters/disk/manifest-folder.ts'
import { volumeFolders, volumeStore } from './adapters/disk/volume-store.ts'
import { dockerRuntime } from './adapters/docker/docker-runtime.ts'
import { networkProbes } from './adapters/http/network-probes.ts'
import { findDevices } from './adapters/kernel/host-devices.ts'
import { readInventory } from './adapters/kernel/host-inventory.ts'
import { hostPlatform } from './adapters/kernel/host-platform.ts'
import { readResolver } from './adapters/kernel/host-resolver.ts'
import { hostSignals } from './adapters/kernel/host-signals.ts'
import { kernelLog } from './adapters/kernel/kernel-log.ts'
import { machineSensors } from './adapters/kernel/machine-sensors.ts'
import { hostAddresses } from './adapters/kernel/node-addresses.ts'
import { podUsage } from './adapters/kernel/pod-usage.ts'
import { mqttControlPlane } from './adapters/mqtt/mqtt-control-plane.ts'
import { timeService } from './adapters/systemd/time-service.ts'
import { assembleDate } from './assembly/date.ts'
import { assembleLocalEndpoint } from './assembly/local-endpoint.ts'
import { assembleMachineHealth } from './assembly/machine-health.ts'
import { assembleMembership } from './assembly/membership.ts'
import { assembleShutdown } from './assembly/shutdown.ts'
import type { RunRequest } from './command-line.ts'
import type { AgentConfiguration } from './configuration.ts'
import type { EvictablePods } from './eviction/evictable-pods.ts'
import { evictionManager } from './eviction/eviction-manager.ts'
import { oomWatch } from './eviction/oom-watch.ts'
import { storageLimits } from './eviction/storage-limits.ts'
import { reservedBelow } from './eviction/thresholds.ts'
import { openBootRecord } from './health/boot-record.ts'
import type { Identity } from './join/identity.ts'
import { leaseManager } from './node/lease-manager.ts'
import type { NodeEvent } from './node/node-event.ts'
import { nodeStatusManager } from './node/node-status-manager.ts'
import { runtimeHealth } from './node/runtime-health.ts'
import type { MachineDevices } from './pods/containers/devices.ts'
import { podGarbageCollector } from './pods/garbage/garbage-collector.ts'
import { defaultPodManagerSettings, podManager } from './pods/pod-manager.ts'
import { staticPodManager } from './pods/static/static-pod-manager.ts'
import { containerRoster } from './usage/roster.ts'

/** A loop that is busy with one thing for longer than this hangs: every call it makes has an earlier deadline. */
const hangsAfterMs = 3 * 60_000

export type Assembly = {
  readonly request: RunRequest
  readonly configuration: AgentConfiguration
  readonly identity: Identity
  readonly log: Log
  /** Told that we are ready, and that we live; undefined where nobody wants to know. */
  readonly service: SystemdNotifier | undefined
}

/** Resolves when everything has stopped after an abort; rejects when a part of it ended by itself. */
export async function runAgent(
  { request, configuration, identity, log, service }: Assembly,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir, root } = request
  const { nodeName } = identity
  const hostname = machineName()
  const inventory = await readInventory({ root, dataDirectory: dataDir })
  const { machine, system } = inventory
  const boot = await openBootRecord(bootFile(dataDir), system.bootID)
  const { rebooted } = boot
  log.info('Agent starting', { node: nodeName, version, controller: identity.mqttUrl, rebooted })

  const random = Math.random
  const watch = loopWatch(systemClock, hangsAfterMs)
  const kernel = kernelLog({ root, clock: watch.clockFor('kernel-log'), log })
  const otherTimeService = timeService({ root, clock: systemClock })
  const sensors = machineSensors({ root, kernel, otherTimeService })
  const date = await assembleDate({
    dataDir,
    certificate: identity.certificate,
    sensors,
    clock: systemClock,
    log,
  })
  const { knownTime, theirTime } = date
  const controlPlane = mqttControlPlane(
    { clock: systemClock, random, log, leave: () => goodbye(shutdown.goingDown()) },
    {
      ...identity,
      agentVersion: version,
      bootID: system.bootID,
      knownTime,
      root,
      leaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
      warningsOnly: configuration.metered,
    },
  )
  const engine = dockerRuntime({
    socketPath: request.dockerSocket,
    nodeName,
    seccompDirectory: join(dataDir, 'seccomp'),
    root,
  })
  const tellOfNode = (event: NodeEvent) => status.tell(event)
  const kills = oomWatch({ kernel, event: tellOfNode, clock: systemClock, log })
  const roster = containerRoster({ list: () => engine.listContainers(), clock: systemClock })
  const runtime = kills.knowing(roster.overhearing(engine))
  const volumes = await volumeFolders(dataDir)
  const usage = podUsage({ root, roster, volumes, clock: systemClock })
  const health = runtimeHealth({ runtime, clock: watch.clockFor('runtime-health'), log, changed: () => status.wake() })
  const signals = hostSignals({ root, dataDirectory: dataDir, imageDirectory: () => health.info()?.rootDirectory })
  const evictable: EvictablePods = {
    active: () => pods.active(),
    stopped: (uid, signal) => pods.stopped(uid, signal),
    endPod: (uid, ending) => pods.endPod(uid, ending),
  }
  const eviction = evictionManager(
    {
      signals,
      pods: evictable,
      usage,
      reclaim: {
        deleteUnusedContainers: (signal) => garbage.deleteUnusedContainers(signal),
        deleteUnusedImages: (signal) => garbage.deleteUnusedImages(signal),
      },
      event: tellOfNode,
      clock: watch.clockFor('eviction'),
      log,
      changed: () => status.wake(),
    },
    {
      thresholds: [...configuration.evictionHard, ...configuration.evictionSoft],
      transitionMs: configuration.evictionPressureTransitionMs,
      maxPodGraceSeconds: configuration.evictionMaxPodGraceSeconds,
      stallWarnings: new Map(configuration.pressureStallWarning),
    },
  )
  const limits = storageLimits({
    pods: evictable,
    usage,
    imagesApart: eviction.imagesApart,
    clock: watch.clockFor('storage-limits'),
    log,
  })
  const machineHealth = await assembleMachineHealth({
    request,
    configuration,
    kernel,
    sensors,
    health,
    podNetworkProblem: engine.podNetworkProblem,
    boot,
    knownTime,
    theirTime,
    memoryDirectory: volumes.memoryDirectory,
    watch,
    clock: systemClock,
    log,
    tell: tellOfNode,
    changed: () => status.wake(),
  })
  const { shutdown, bootTime, goodbye } = await assembleShutdown({
    root,
    dataDir,
    rebooted,
    settings: configuration.shutdown,
    controlPlane,
    sensors,
    pods: { ...evictable, holds: (uid) => pods.holds(uid), resume: () => pods.resume() },
    watch,
    clock: systemClock,
    random,
    log,
    tell: tellOfNode,
    changed: () => status.wake(),
  })
  const status = nodeStatusManager(
    {
      machine,
      system,
      addresses: hostAddresses({ root, clock: systemClock }, { nodeName, hostname, nodeIP: configuration.nodeIP }),
      pressures: eviction.pressures,
      machineHealth: () => {
        const found = machineHealth.conditions.conditions()
        return found && [...found, ...shutdown.conditions()]
      },
      machineProblems: () => [
        ...machineHealth.conditions.problems(),
        ...(shutdown.goingDown() === undefined ? [] : [shutdownProblem]),
      ],
      runtime: health,
      devices: async () => counted(await findDevices(configuration.devices)),
      controlPlane,
      clock: watch.clockFor('node-status'),
      random,
      log,
    },
    {
      nodeName,
      agentVersion: nodeVersion,
      maxPods: configuration.maxPods,
      podsPerCore: configuration.podsPerCore,
      reserved: [
        configuration.systemReserved,
        configuration.kubeReserved,
        reservedBelow(configuration.evictionHard, machine),
      ],
      updateMs: configuration.nodeStatusUpdateMs,
      reportMs: configuration.nodeStatusReportMs,
      rebooted,
    },
  )
  const lease = leaseManager({ controlPlane, clock: watch.clockFor('lease'), random })
  const pods = podManager(
    {
      runtime,
      volumes: volumeStore(volumes),
      hostResolver: () => readResolver(root),
      platformProblem: hostPlatform({ root, machine: unameMachine() }),
      devices: () => findDevices(configuration.devices),
      controlPlane,
      network: networkProbes(),
      date: { nowMs: date.nowMs, uptimeMs: () => sensors.time().uptimeMs },
      gate: boot.startGate({ clock: systemClock, uptimeMs: () => sensors.time().uptimeMs, log }),
      checkpoint: fileCheckpoint(checkpointPath(dataDir), log),
      node: {
        isKnown: () => status.status() !== undefined,
        hostIP: () => status.status()?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
        allocatable: () => status.status()?.allocatable ?? {},
        memoryCapacityBytes: () => machine.memoryBytes,
        kernelLimits: health.info,
        pressures: () => eviction.pressures() ?? [],
        isShuttingDown: () => shutdown.goingDown() !== undefined,
      },
      clock: systemClock,
      random,
      log,
    },
    {
      ...defaultPodManagerSettings,
      nodeName,
      podPidsLimit: configuration.podPidsLimit,
      keptDead: keptDead(configuration),
      pulls: configuration.imagePulls,
    },
  )
  const garbage = podGarbageCollector(
    {
      runtime,
      pods,
      signals,
      event: tellOfNode,
      clock: systemClock,
      log,
    },
    configuration.garbage,
  )
  const { certificates, registering, mirrors, teller } = assembleMembership({
    dataDir,
    root,
    configuration,
    identity,
    inventory,
    controlPlane,
    knownTime,
    heardTime: (wallMs) => theirTime.heard(wallMs, true),
    nowMs: date.guessedMs,
    status,
    pods,
    watch,
    clock: systemClock,
    random,
    log,
  })
  const { staticPodPath, fileCheckMs } = configuration
  const staticPods = staticPodManager(
    {
      folder: manifestFolder(staticPodPath),
      onChange(wanted) {
        pods.staticPods(wanted)
        mirrors.staticPods(wanted)
      },
      warn: (reason, message) => tellOfNode({ type: 'Warning', reason, message }),
      clock: watch.clockFor('static-pods'),
      log,
    },
    { nodeName, fileCheckMs },
  )
  const hanging = () => watch.stuck().map((loop) => `loop ${loop} hangs`)
  const { endpoint, sampler } = assembleLocalEndpoint({
    request,
    configuration,
    nodeName,
    inventory,
    health,
    pods,
    usage,
    roster,
    controlPlane,
    memoryDirectory: volumes.memoryDirectory,
    problems: hanging,
    clock: systemClock,
    log,
  })

  const statusLine = () => {
    const link = controlPlane.connected ? 'connected to' : 'no connection to'
    return [`Node ${nodeName}: ${pods.pods().length} pods, ${link} ${identity.mqttUrl}`, ...health.problems()].join(
      '; ',
    )
  }
  /** Ready without the controller: a machine that comes back alone runs its pods. */
  const view = { ready: health.looked, problems: hanging, status: statusLine }
  // What the files want is known before anything is decided, and with no one to ask.
  if (staticPodPath === '') mirrors.staticPods([])
  else await staticPods.look()
  await runLoops(
    [
      ...(service === undefined ? [] : [notifierLoop(service, view, systemClock, log)]),
      {
        name: 'control-plane',
        run: (signal) =>
          controlPlane.run(
            {
              desired: teller.desired,
              store: registering.store,
              trust: certificates.trust,
              ...(configuration.metered ? {} : { stats: sampler.call }),
              controllerTime: theirTime.heard,
            },
            signal,
          ),
      },
      teller,
      certificates,
      knownTime,
      otherTimeService,
      ...(staticPodPath === '' ? [] : [staticPods]),
      mirrors,
      { name: 'kernel-log', run: kernel.run },
      { name: 'eviction', run: eviction.run },
      limits,
      { name: 'runtime-health', run: health.run },
      ...machineHealth.loops,
      { name: 'node-status', run: status.run },
      { name: 'lease', run: lease.run },
      pods,
      garbage,
      { name: 'shutdown', run: shutdown.run },
      bootTime,
      ...(configuration.registerNode ? [{ name: 'registration', run: registering.run }] : []),
      { name: 'usage', run: sampler.run },
      { name: 'local-endpoint', run: endpoint.run },
    ],
    signal,
    log,
  )
  await boot.stop()
}

/** The visit of a pod tidies up at once, as the kubelet does; the collector does the rest. */
function keptDead({ garbage }: AgentConfiguration): number {
  const { maxPerPodContainer } = garbage.containers
  return maxPerPodContainer < 0 ? Number.POSITIVE_INFINITY : Math.max(1, maxPerPodContainer)
}

function counted(devices: MachineDevices) {
  return Object.fromEntries([...devices].map(([resource, paths]) => [resource, paths.length]))
}
