/** Checks that the machine has a hostname and a machine-id of its own, not those of the card that it was copied from. */
import { dnsSubdomainProblem } from '../../api/names.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type MarksReading = {
  /** Undefined: unknown. */
  readonly hostname: string | undefined
  /** The content of `/etc/machine-id`; undefined: the file does not exist. */
  readonly machineID: string | undefined
  /** The node name in the identity; undefined before the machine has joined. */
  readonly nodeName: string | undefined
}

const images = /^(raspberrypi|debian|ubuntu|localhost(\..*)?|dietpi|armbian|orangepi\w*|bananapi\w*|rock(-\w+)?)$/

export function marksFindings({ hostname, machineID, nodeName }: MarksReading): readonly DoctorFinding[] {
  const name =
    hostname === undefined
      ? unknown('hostname', 'The hostname is not saved here')
      : nameFinding(hostname.toLowerCase(), nodeName)
  return [name, machineIdFinding(machineID?.trim())]
}

function nameFinding(name: string, nodeName: string | undefined): DoctorFinding {
  const check = 'hostname'
  if (nodeName !== undefined) {
    if (name === nodeName) return ok(check, `The machine and its node are called ${name}`)
    const remedy =
      'If the card was copied from that machine, join again under its own name. With --node-name it may be meant so'
    return warning(check, `The machine is called ${name}, but joined as node ${nodeName}`, remedy)
  }
  const trouble = dnsSubdomainProblem(name)
  if (trouble !== undefined) {
    const remedy = "Run 'hostnamectl set-hostname NAME', or join with --node-name"
    return problem(check, `The hostname ${JSON.stringify(name)} cannot be a node's name: it ${trouble}`, remedy)
  }
  if (images.test(name)) {
    const remedy = "Run 'hostnamectl set-hostname NAME', so that no two machines of the fleet have one name"
    return warning(check, `The machine is called ${name}, a default of images that many machines have`, remedy)
  }
  return ok(check, `The machine is called ${name}`)
}

function machineIdFinding(id: string | undefined): DoctorFinding {
  const check = 'machine-id'
  if (id !== undefined && /^[0-9a-f]{32}$/.test(id) && !/^(.)\1*$/.test(id)) {
    return ok(check, `The machine-id is ${id}; copied cards share it`)
  }
  const found =
    id === undefined || id === ''
      ? '/etc/machine-id is empty or missing'
      : `/etc/machine-id holds ${JSON.stringify(id)}`
  return warning(
    check,
    `${found}, so the machine has no identity of its own`,
    "Run 'systemd-machine-id-setup', and restart",
  )
}
