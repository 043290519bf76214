/**
 * Checks of the controller, in order: it is reachable, it is the fleet's own, it accepts this node, and the node's hardware is
 * this machine.
 */
import { describeHardware, type HardwareIdentity, sameMachine } from '../../api/node/hardware-identity.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'
import { controllerClock } from './time.ts'

export type Failure = { readonly error: string; readonly remedy: string }

/** Probing ends with the first step that fails; later ones are undefined. */
export type ControllerReading = {
  readonly nodeName: string
  readonly apiHost: string
  readonly mqttHost: string
  /** A TCP connection to the API. */
  readonly port: 'open' | Failure
  /** A request for the machine's own Node over TLS, with the authority and the certificate of its identity. */
  readonly api: ApiReading | Failure | undefined
  /** Other controllers whose API was not reached, while this one was. */
  readonly others?: readonly { readonly host: string; readonly failure: Failure }[]
  /** TCP and TLS to the broker, with the same identity. */
  readonly mqtt: 'open' | Failure
  readonly hardware: HardwareIdentity
}

export type ApiReading = {
  readonly status: number
  /** The message of the API's refusal. */
  readonly message: string | undefined
  /** The hardware recorded on the Node; undefined where it has none. */
  readonly nodeHardware: HardwareIdentity | undefined
  /** How far the clock of this machine is ahead of the controller's. */
  readonly aheadMs: number | undefined
}

export function controllerFindings(reading: ControllerReading): readonly DoctorFinding[] {
  const { apiHost, mqttHost, port, api, mqtt, others = [] } = reading
  const away = others.map(({ host, failure: { error, remedy } }) =>
    warning('controller-port', `Another controller cannot be reached at ${host}: ${error}`, remedy),
  )
  const reached =
    port === 'open'
      ? ok('controller-port', `The controller's port is open at ${apiHost}`)
      : failed('controller-port', `The controller cannot be reached at ${apiHost}`, port)
  const broker =
    mqtt === 'open'
      ? ok('mqtt-port', `The broker's port is open at ${mqttHost}, and the broker belongs to this fleet`)
      : failed('mqtt-port', `The broker cannot be reached at ${mqttHost}`, mqtt)
  if (api === undefined) {
    return [reached, unknown('controller-api', 'Not tried: the controller cannot be reached'), broker]
  }
  if ('error' in api)
    return [reached, ...away, failed('controller-api', `Cannot use the API at ${apiHost}`, api), broker]
  return [reached, ...away, ...answered(reading, api), broker]
}

function failed(check: string, what: string, { error, remedy }: Failure): DoctorFinding {
  return problem(check, `${what}: ${error}`, remedy)
}

function answered({ apiHost, nodeName, hardware }: ControllerReading, api: ApiReading): readonly DoctorFinding[] {
  const { status, message, nodeHardware, aheadMs } = api
  const check = 'controller-api'
  const clock = controllerClock(aheadMs)
  switch (status) {
    case 200:
      return [
        ok(check, `The API at ${apiHost} accepts this machine as node ${nodeName}`),
        clock,
        ...ownHardware(nodeName, hardware, nodeHardware),
      ]
    case 404: {
      const remedy = 'The agent registers it when it is started; if it was deleted on purpose, stop the agent here'
      return [warning(check, `The API at ${apiHost} accepts this machine, but has no node ${nodeName}`, remedy), clock]
    }
    case 401:
    case 403: {
      const remedy = 'Join again with a new token; if the controller was set up again, every machine must join again'
      const found = `The API at ${apiHost} does not accept this machine: ${message ?? `status ${status}`}`
      return [problem(check, found, remedy), clock]
    }
    default: {
      const remedy = "See the controller's log"
      return [
        problem(check, `The API at ${apiHost} answers with status ${status}: ${message ?? 'no reason'}`, remedy),
        clock,
      ]
    }
  }
}

/** A card that was copied after a join holds the identity of the first machine. */
function ownHardware(
  nodeName: string,
  ours: HardwareIdentity,
  theirs: HardwareIdentity | undefined,
): readonly DoctorFinding[] {
  const check = 'hardware'
  if (theirs === undefined) return [unknown(check, `Node ${nodeName} has no record of its hardware`)]
  if (sameMachine(ours, theirs)) return [ok(check, `Node ${nodeName} is this machine: ${describeHardware(ours)}`)]
  const isCopy = ours.machineID !== undefined && ours.machineID === theirs.machineID
  const found = `Node ${nodeName} is registered as another machine (${describeHardware(theirs)}); this one is ${describeHardware(ours)}`
  const remedy = isCopy
    ? `The card was copied: give this machine another hostname, remove /etc/machine-id and run 'systemd-machine-id-setup', then join it with a new token`
    : 'If the card was moved here, join again with a new token; if both machines run, give this one another name first'
  return [problem(check, found, remedy)]
}
