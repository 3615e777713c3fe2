// Styles that Argo CD's classes do not provide. Colours are those of its themes, or visible in both the dark and the light theme.

import {react} from '../react';

const ID = 'argocd-ocm-cmp-style';

const STYLE = `
.ocm { font-size: 13px; line-height: 1.5; }
.ocm *, .ocm-panel * { box-sizing: border-box; }
.ocm-page { padding: 18px; }
.ocm-icon { margin-right: 6px; width: 14px; text-align: center; }
.ocm-health { white-space: nowrap; }
.ocm .ocm-title { font-size: 20px; font-weight: 500; margin: 0 40px 12px 0; color: inherit; }
.ocm-head { font-size: 15px; margin-bottom: 8px; overflow-wrap: anywhere; }
.ocm-head__health { font-weight: 600; margin-right: 12px; }
.ocm-note { margin: 10px 0; padding: 8px 12px; border-left: 3px solid #8FA4B1; background: rgba(143, 164, 177, .14); }
.ocm-note code { background: none; border: 0; color: inherit; font-family: monospace; }
.ocm-placeholder { padding: 24px; text-align: center; opacity: .8; }
.ocm-facts { display: flex; flex-wrap: wrap; gap: 4px 24px; margin: 0 0 10px; }
.ocm-facts dt { font-weight: 600; opacity: .75; margin: 0 -16px 0 0; font-size: 12px; line-height: 20px; }
.ocm-facts dd { margin: 0; overflow-wrap: anywhere; }
.ocm-health-bar { display: flex; gap: 2px; height: 10px; margin: 0 0 10px; border-radius: 4px; overflow: hidden; }
.ocm-health-bar span { min-width: 3px; }
.ocm-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 12px; margin: 8px 0; }
.ocm .ocm-bar__filter { flex: 0 1 260px; width: auto; margin: 0; height: 34px; font-size: 13px; }
.ocm-bar__chips { display: flex; flex-wrap: wrap; gap: 6px; }
.ocm-bar__count { margin-left: auto; opacity: .8; }
.ocm-chip { border: 1px solid #8FA4B1; border-radius: 14px; padding: 2px 10px; background: transparent; color: inherit; cursor: pointer; font: inherit; line-height: 22px; }
.ocm-chip:hover { border-color: #00A2B3; }
.ocm-chip--pressed { border-color: #00A2B3; background: rgba(0, 162, 179, .2); box-shadow: inset 0 0 0 1px #00A2B3; }
.ocm-grid { border: 1px solid rgba(143, 164, 177, .4); border-radius: 4px; overflow: hidden; }
.ocm-grid .ocm-grid__head { position: sticky; top: 0; z-index: 1; display: grid; height: 35px; margin: 0; border-radius: 0; box-shadow: inset 0 -2px 0 rgba(143, 164, 177, .4); font-size: 12px; font-weight: 500; line-height: 35px; text-transform: uppercase; }
.ocm-grid__title, .ocm-grid__cell { padding: 0 8px; min-width: 0; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.ocm-grid__title { cursor: pointer; }
.ocm-grid__title i { margin-left: 5px; }
.ocm-grid__body { position: relative; overflow-y: auto; max-height: min(56vh, 575px); }
.ocm-grid__lines { position: relative; }
.ocm-grid .ocm-grid__row { position: absolute; left: 0; right: 0; display: grid; height: 36px; margin: 0; font-size: 13px; line-height: 36px; border-radius: 0; box-shadow: inset 0 -1px 0 rgba(143, 164, 177, .25); }
.ocm-grid .ocm-grid__row:hover, .ocm-grid .ocm-grid__row--open { box-shadow: inset 3px 0 0 #00A2B3, inset 0 -1px 0 rgba(143, 164, 177, .25); }
.ocm .ocm-link { color: #00778A; cursor: pointer; text-decoration: underline; }
.theme-dark .ocm .ocm-link { color: #1FBDD0; }
.theme-dark .ocm-grid__body, .theme-dark .ocm-yaml { color-scheme: dark; }
.ocm-unreachable { color: #f4c030; margin-left: 6px; }
.ocm [tabindex]:focus, .ocm button:focus, .ocm a:focus, .ocm-panel button:focus { outline: none; }
.ocm [tabindex]:focus-visible, .ocm button:focus-visible, .ocm a:focus-visible, .ocm-panel button:focus-visible { outline: 2px solid #00A2B3; outline-offset: -2px; }
.ocm-details { margin-top: 12px; padding: 12px 16px; border: 1px solid rgba(143, 164, 177, .4); border-radius: 4px; }
.ocm-details__head { display: flex; justify-content: space-between; align-items: center; margin-bottom: 8px; }
.ocm-details h3, .ocm-details h4 { margin: 0; font-size: 15px; font-weight: 600; color: inherit; overflow-wrap: anywhere; }
.ocm-details h4 { font-size: 13px; }
.ocm-message { font-size: 13px; margin: 0 0 8px; overflow-wrap: anywhere; white-space: pre-wrap; }
.ocm-table { width: 100%; margin: 0 0 12px; border-collapse: collapse; }
.ocm .ocm-table th, .ocm .ocm-table td { padding: 4px 12px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid rgba(143, 164, 177, .25); background: transparent; color: inherit; font-size: 13px; overflow-wrap: break-word; }
.ocm .ocm-table th { font-weight: 600; opacity: .75; }
.ocm .ocm-table thead, .ocm .ocm-table tbody, .ocm .ocm-table tr { background: transparent; border: 0; color: inherit; }
.ocm-yaml { margin: 0; padding: 12px; max-height: 50vh; overflow: auto; font: 12px/1.5 monospace; white-space: pre; background: rgba(143, 164, 177, .12); color: inherit; }
.ocm-tabs { display: flex; flex-wrap: wrap; gap: 4px; margin: 0 0 12px; border-bottom: 1px solid rgba(143, 164, 177, .4); }
.ocm-tabs__tab { padding: 4px 14px; border: 0; border-bottom: 3px solid transparent; background: transparent; color: inherit; font: inherit; cursor: pointer; }
.ocm-tabs__tab[aria-selected="true"] { border-color: #00A2B3; font-weight: 600; }
.ocm-live__bar { display: flex; justify-content: flex-end; margin-bottom: 8px; }
.ocm-value { margin: 0; font: 12px/1.5 monospace; white-space: pre-wrap; overflow-wrap: anywhere; background: none; color: inherit; }
.ocm-warning { color: #f4c030; }
.ocm-log { min-height: 120px; }
.ocm-log div { min-height: 1.5em; }
.ocm-log--wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
.ocm .ocm-select { max-width: 240px; height: 28px; border: 1px solid #8FA4B1; border-radius: 14px; padding: 0 8px; background: transparent; color: inherit; font: inherit; }
.theme-dark .ocm .ocm-select { color-scheme: dark; background: #28292a; }
.ocm-panel__title { display: flex; align-items: center; margin-bottom: .5em; }
.ocm-panel .ocm-panel__title label { margin: 0; font-size: 12px; font-weight: 600; color: #6D7F8B; }
.ocm-panel .ocm-panel__open { padding: 0; border: 0; background: transparent; color: inherit; font: inherit; text-align: left; cursor: pointer; }
`;

/** Adds the style to the page once, and never removes it, because other parts of the extension may use it. */
export function useStyle(): void {
    react().useEffect(() => {
        if (document.getElementById(ID) !== null) return;
        const style = document.createElement('style');
        style.id = ID;
        style.textContent = STYLE;
        document.head.appendChild(style);
    }, []);
}
