/** Checks of `baseline` for what is the host's: its namespaces, ports, devices and files. */
import type { Container } from '../pod.ts'
import {
  type Confined,
  containersText,
  distinct,
  plural,
  quotedList,
  type SecurityCheck,
  settersText,
} from './security-check.ts'

export const hostNamespaces: SecurityCheck = {
  name: 'hostNamespaces',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ spec }) {
        const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true)
        if (shared.length === 0) return undefined
        return { reason: 'host namespaces', detail: shared.map((field) => `${field}=true`).join(', ') }
      },
    },
  ],
}

export const hostPathVolumes: SecurityCheck = {
  name: 'hostPathVolumes',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ spec: { volumes = [] } }) {
        const bad = volumes.filter(({ hostPath }) => hostPath !== undefined)
        if (bad.length === 0) return undefined
        const detail = `${plural('volume', bad)} ${quotedList(bad.map(({ name }) => name))}`
        return { reason: 'hostPath volumes', detail }
      },
    },
  ],
}

export const containerHostPorts: SecurityCheck = {
  name: 'hostPorts',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ containers }) {
        const portsOf = ({ ports = [] }: Container) =>
          ports.flatMap(({ hostPort = 0 }) => (hostPort === 0 ? [] : [String(hostPort)]))
        const bad = containers.filter((container) => portsOf(container).length > 0)
        if (bad.length === 0) return undefined
        const ports = distinct(bad.flatMap(portsOf))
        const use = bad.length === 1 ? 'uses' : 'use'
        return {
          reason: 'hostPort',
          detail: `${containersText(bad)} ${use} ${plural('hostPort', ports)} ${ports.join(', ')}`,
        }
      },
    },
  ],
}

export const privilegedContainers: SecurityCheck = {
  name: 'privileged',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ containers }) {
        const bad = containers.filter(({ securityContext }) => securityContext?.privileged === true)
        if (bad.length === 0) return undefined
        return { reason: 'privileged', detail: `${containersText(bad)} must not set securityContext.privileged=true` }
      },
    },
  ],
}

export const windowsHostProcess: SecurityCheck = {
  name: 'windowsHostProcess',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ spec, containers }) {
        const isHostProcess = ({ securityContext }: Confined) => securityContext?.windowsOptions?.hostProcess === true
        const setters = settersText(isHostProcess(spec), containers.filter(isHostProcess))
        if (setters === '') return undefined
        const detail = `${setters} must not set securityContext.windowsOptions.hostProcess=true`
        return { reason: 'hostProcess', detail }
      },
    },
  ],
}
