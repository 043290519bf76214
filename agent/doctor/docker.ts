/** Checks of Docker and of the settings that pods need. */
import { dockerNotRunning } from '../health/docker.ts'
import type { BridgeNetwork } from './docker-firewall.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type DockerFacts = {
  readonly version: string
  /** False: it reported its version only, and the others are guesses. */
  readonly hasSettings: boolean
  /** `overlay2` */
  readonly storageDriver: string
  readonly cgroupDriver: string
  readonly cgroupVersion: string
  readonly liveRestore: boolean
  readonly rootDirectory: string
  /** `name=seccomp,profile=default`, `name=userns` */
  readonly securityOptions: readonly string[]
  /** undefined: it does not report one. */
  readonly firewallBackend?: string | undefined
  /** Its bridges whose addresses it translates; undefined: it did not report them in time. */
  readonly networks?: readonly BridgeNetwork[] | undefined
}

/** `denied`: the user who runs the doctor cannot open the socket. */
export type DockerSilent = 'absent' | 'refuses' | 'hangs' | 'denied'

/** `found`: what the health check found. */
export function dockerFinding(found: DoctorFinding, socket: string, answer: DockerFacts | DockerSilent): DoctorFinding {
  if (answer === 'denied') {
    return unknown(found.check, `${socket} may not be opened by this user`, 'Run it with sudo')
  }
  if (answer === 'absent' && found.found === dockerNotRunning) {
    const remedy =
      "Install Docker (apt-get install docker.io), or see 'systemctl status docker'; --docker-socket names another"
    return problem(found.check, `Docker is not running: there is no ${socket}`, remedy)
  }
  return found
}

/** Checks Docker's settings. */
export function dockerSettings(facts: DockerFacts, isSystemdHere: boolean): readonly DoctorFinding[] {
  if (!facts.hasSettings) {
    const remedy =
      "Where names cannot be resolved it takes a minute: see 'getent hosts registry-1.docker.io', and try again"
    return [unknown('docker-settings', 'Docker did not report its settings in time', remedy)]
  }
  return [storageDriver(facts), cgroupDriver(facts, isSystemdHere), users(facts), restore(facts)]
}

function storageDriver({ storageDriver: driver, rootDirectory }: DockerFacts): DoctorFinding {
  const check = 'docker-storage'
  if (driver === 'vfs') {
    const found = `Docker stores a full copy of each image layer (storage driver vfs), which fills and wears the disk`
    return warning(
      check,
      found,
      `Put ${rootDirectory} on ext4 or another filesystem that overlay2 can use, and restart Docker`,
    )
  }
  if (/^(aufs|devicemapper|overlay)$/.test(driver)) {
    const found = `Docker uses the storage driver ${driver}, which newer releases do not have`
    return warning(
      check,
      found,
      'Set "storage-driver": "overlay2" in /etc/docker/daemon.json; images are then pulled again',
    )
  }
  return ok(check, `Docker keeps images with ${driver} in ${rootDirectory}`)
}

function cgroupDriver({ cgroupDriver: driver, cgroupVersion }: DockerFacts, isSystemdHere: boolean): DoctorFinding {
  const check = 'docker-cgroups'
  if (driver === 'none') {
    const found = 'Docker runs without control groups, so no pod can be limited or measured'
    return problem(check, found, 'Run Docker as root, not rootless, on this machine')
  }
  if (isSystemdHere && cgroupVersion === '2' && driver === 'cgroupfs') {
    const found = 'Docker manages control groups beside systemd (driver cgroupfs): both change the same hierarchy'
    return warning(
      check,
      found,
      'Set "exec-opts": ["native.cgroupdriver=systemd"] in /etc/docker/daemon.json and restart Docker',
    )
  }
  return ok(check, `Docker makes control groups (v${cgroupVersion}) with ${driver}`)
}

/** What is configured for every container (security options of /info): pods do not expect it. */
function users({ securityOptions }: DockerFacts): DoctorFinding {
  const check = 'docker-users'
  const has = (name: string) => securityOptions.some((option) => option.split(',').includes(`name=${name}`))
  if (has('userns')) {
    const found =
      'Docker remaps the users of containers (userns-remap): pods with hostNetwork, hostPID or privileged ' +
      'do not start, and files of hostPath volumes belong to other users in pods'
    const remedy = 'Remove "userns-remap" from /etc/docker/daemon.json and restart Docker; images are then pulled again'
    return problem(check, found, remedy)
  }
  if (has('no-new-privileges')) {
    const found =
      'Docker forbids every container to gain privileges (no-new-privileges): sudo and ping fail in some pods'
    const remedy =
      'Remove "no-new-privileges" from /etc/docker/daemon.json and restart Docker; pods choose it by allowPrivilegeEscalation: false'
    return warning(check, found, remedy)
  }
  return ok(check, 'Docker gives containers the users and privileges that pods ask for')
}

function restore({ liveRestore }: DockerFacts): DoctorFinding {
  const check = 'docker-live-restore'
  if (liveRestore) return ok(check, 'Containers keep running while Docker is restarted or upgraded (live-restore)')
  return warning(
    check,
    'When Docker is restarted or upgraded all pods are stopped, and started again (live-restore is off)',
    'Set "live-restore": true in /etc/docker/daemon.json, then \'systemctl reload docker\'; this does not affect pods',
  )
}
