/** Is Docker set up as pods need it? */
import { type Finding, ok, problem, unknown, warning } from './finding.ts'
import { dockerFinding } from './health.ts'

export type DockerFacts = {
  readonly version: string
  /** `overlay2` */
  readonly storageDriver: string
  readonly cgroupDriver: string
  readonly cgroupVersion: string
  readonly liveRestore: boolean
  readonly rootDirectory: string
}

/** `denied`: we may not open its socket. */
export type DockerSilent = 'absent' | 'refuses' | 'hangs' | 'denied'

export type DockerState = {
  readonly socket: string
  readonly answer: DockerFacts | DockerSilent
  readonly isSystemdHere: boolean
}

export function dockerFindings({ socket, answer, isSystemdHere }: DockerState): readonly Finding[] {
  if (typeof answer === 'string') return [silent(socket, answer)]
  return [
    dockerFinding(answer.version, undefined),
    storageDriver(answer),
    cgroupDriver(answer, isSystemdHere),
    restore(answer),
  ]
}

function silent(socket: string, how: DockerSilent): Finding {
  if (how === 'denied') {
    return unknown('docker', `${socket} may not be opened by this user`, 'Run it with sudo')
  }
  if (how === 'absent') {
    const remedy =
      "Install Docker (apt-get install docker.io), or see 'systemctl status docker'; --docker-socket names another"
    return problem('docker', `Docker is not running: there is no ${socket}`, remedy)
  }
  return dockerFinding(undefined, how)
}

function storageDriver({ storageDriver: driver, rootDirectory }: DockerFacts): Finding {
  const check = 'docker-storage'
  if (driver === 'vfs') {
    const found = `Docker copies every layer of an image whole (storage driver vfs), which fills and wears the disk`
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

function cgroupDriver({ cgroupDriver: driver, cgroupVersion }: DockerFacts, isSystemdHere: boolean): Finding {
  const check = 'docker-cgroups'
  if (driver === 'none') {
    const found = 'Docker runs without control groups, so no pod can be limited or measured'
    return problem(check, found, 'Run Docker as root, not rootless, on this machine')
  }
  if (isSystemdHere && cgroupVersion === '2' && driver === 'cgroupfs') {
    const found = 'Docker makes control groups beside systemd (driver cgroupfs), and both believe that they own them'
    return warning(
      check,
      found,
      'Set "exec-opts": ["native.cgroupdriver=systemd"] in /etc/docker/daemon.json and restart Docker',
    )
  }
  return ok(check, `Docker makes control groups (v${cgroupVersion}) with ${driver}`)
}

function restore({ liveRestore }: DockerFacts): Finding {
  const check = 'docker-live-restore'
  if (liveRestore) return ok(check, 'Containers go on while Docker is restarted or upgraded (live-restore)')
  return warning(
    check,
    'When Docker is restarted or upgraded all pods are stopped, and started again (live-restore is off)',
    'Set "live-restore": true in /etc/docker/daemon.json, then \'systemctl reload docker\'; no pod is touched by that',
  )
}
